"""Topology-aware scheduling: where in a tree of node domains the pods of a pod set go."""
