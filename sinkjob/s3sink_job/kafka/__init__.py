"""Kafka: topics, offsets, transactions, consumer groups, and reading slices, with the Java client that Spark brings."""
