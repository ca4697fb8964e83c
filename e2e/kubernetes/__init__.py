"""Sinks on a real Kubernetes: `kubectl apply` → operator → pods → objects → status."""
