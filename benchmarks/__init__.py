"""`make bench`: the cost of a sink compared with the minimum that Spark and Kafka cost without it.

Absolute figures depend on the machine. So the limit (Spark reads the topic and discards it) and the product take turns
in one run, and the result is the ratio of the two, per second of CPU.
"""
