"""Where another sink stopped: its consumer group, its index objects and its objects, as a start for S3Sink."""
