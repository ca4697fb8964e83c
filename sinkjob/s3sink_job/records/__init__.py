"""Kafka's bytes as Arrow columns: decoding and the columns that say where a record came from."""
