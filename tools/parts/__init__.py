"""Real parts on loopback: a Kafka broker, S3 servers, a schema registry, and a proxy that breaks things on purpose.

Tests run against the programs that people use, not against imitations. Each part is a context manager: it starts one
program in a folder of its own, and stops it by its process id.
"""
