"""S3 as the protocol needs it: conditional writes, uploads that stay invisible until completed, a probe."""
