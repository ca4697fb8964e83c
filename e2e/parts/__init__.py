"""Real parts on loopback: a Kafka broker, S3 servers, and a proxy that breaks things on purpose.

Tests prove what the sink does against the programs that people run, not against imitations of them. Each
part is a context manager that starts one program in a folder of its own and stops it by its process id.
"""
