"""Environment variables that the operator and the image set, and the job reads."""

from __future__ import annotations

CLUSTER = "S3SINK_CLUSTER"
"""Who owns the state: the id of the Kubernetes cluster."""
SECRETS = "S3SINK_SECRETS"
"""The folder of mounted Secrets."""
LISTEN = "S3SINK_LISTEN"
"""Address of /status, /metrics and /healthz."""
GRACE = "S3SINK_GRACE"
"""Seconds that a flush may take after SIGTERM."""
STATUS_FILE = "S3SINK_STATUS_FILE"
"""Where the last status goes when a run ends."""
STATUS_BYTES = "S3SINK_STATUS_BYTES"
"""The longest that the status file may be: Kubernetes cuts termination messages off at 4096 bytes."""

# Cluster mode: what a driver has to know about its own pod, and what its executors are made of.
POD_NAME = "S3SINK_POD_NAME"
POD_IP = "S3SINK_POD_IP"
NAMESPACE = "S3SINK_NAMESPACE"
IMAGE = "S3SINK_IMAGE"
PULL_POLICY = "S3SINK_PULL_POLICY"
EXECUTOR_ACCOUNT = "S3SINK_EXECUTOR_ACCOUNT"
EXECUTOR_TEMPLATE = "S3SINK_EXECUTOR_TEMPLATE"
RUN_ID = "S3SINK_RUN_ID"
"""The run of a full refresh: the uid of its Job. A pod with the same one goes on with the same run."""

# The image.
JARS = "S3SINK_JARS"
"""A folder with the jars of the Kafka connector. Without it Spark fetches them."""
CLASSES = "S3SINK_CLASSES"
"""An archive of Spark's classes, which makes Java start faster."""
PREFIX = "S3SINK_"
"""Of every variable of ours: pod templates may not set them."""
OPERATOR_PREFIX = "S3SINK_OPERATOR_"
"""Of the operator's own flags."""
