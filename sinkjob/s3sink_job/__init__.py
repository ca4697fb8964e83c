"""The data plane: copies Kafka topics into S3 objects, exactly once."""
