"""Object stores: a protocol of requests, S3 behind it, retries, and what the product builds on top."""
