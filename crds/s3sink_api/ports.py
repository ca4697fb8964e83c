"""Ports and paths of the HTTP servers of driver and operator."""

from __future__ import annotations

DRIVER_PORT = 8080
OPERATOR_PORT = 8081
STATUS, METRICS, HEALTH, READY = "/status", "/metrics", "/healthz", "/readyz"
