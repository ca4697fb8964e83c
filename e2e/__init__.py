"""Real parts (broker, S3 server, faults) that tests, the demo and benchmarks run against."""
