"""Configurations of other sinks, converted into S3Sink manifests. Pure: text in, manifests and a report out."""
