"""The control plane: turns S3Sink resources into running sink jobs."""
