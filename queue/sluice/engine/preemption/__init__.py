"""Whom to preempt: candidates, the two searches, and giving back what is not needed."""
