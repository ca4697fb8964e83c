"""Checks from outside of a running sink: verify, preflight checks, orphaned uploads."""
