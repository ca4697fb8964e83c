"""Builds and starts what tests, the demo and benchmarks run against: parts, clusters, the image."""
