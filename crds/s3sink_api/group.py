"""Group, version and names of the resource in the Kubernetes API."""

from __future__ import annotations

GROUP, VERSION, KIND, PLURAL = "s3sink.dev", "v1alpha1", "S3Sink", "s3sinks"
API_VERSION = f"{GROUP}/{VERSION}"
