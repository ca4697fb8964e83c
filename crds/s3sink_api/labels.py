"""Labels, annotations and roles of the objects that belong to a sink."""

from __future__ import annotations

DRIVER, EXECUTOR = "driver", "executor"
"""Roles of pods, and the names of their main containers."""
SINK_LABEL = "s3sink.dev/sink"
ROLE_LABEL = "s3sink.dev/role"
NAME_LABEL = "app.kubernetes.io/name"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
MANAGER = "s3sink-operator"
APPLIED = "s3sink.dev/applied"
"""Annotation of every child: the hash of the document that was applied."""
SPEC_HASH = "s3sink.dev/spec-hash"
"""Annotation of driver pods: the hash of the sink's spec."""
CONFIG_HASH = "s3sink.dev/config-hash"
"""Annotation of driver pods: the hash of their ConfigMap."""
ADOPT_FROM = "s3sink.dev/adopt-from"
"""Annotation of a sink that takes over the state of a sink in another cluster."""
