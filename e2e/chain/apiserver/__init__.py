"""The operator against a real API server, controller-manager and garbage collector, without a node.

Pods stay pending here: where a test needs a driver that reports, it serves the job's own `/status` and says in
the pod's status where that is.
"""
