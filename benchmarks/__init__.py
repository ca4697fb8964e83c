"""`make bench`: what a sink costs beside the least that Spark and Kafka cost without it, on this machine, today.

Absolute figures say more about a machine than about a program. So the limit (Spark reads the topic and throws
it away) and the product take turns in one run, and what counts is the ratio of the two per second of CPU.
"""
