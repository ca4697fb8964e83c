"""What one Spark task does: a slice of Kafka records into objects."""
