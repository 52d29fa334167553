"""The real control plane on this machine: etcd, kube-apiserver and, if wanted, running Pods.

It is found or built once (`programs`, `build`), started on free ports with its own certificates,
and thrown away at the end (`plane`). For ``sluice up --real``, the tests and the benchmarks.
"""
