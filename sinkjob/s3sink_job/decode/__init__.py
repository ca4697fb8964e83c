"""Kafka's bytes as Arrow columns: one module for each input format, chosen by the format of key and value.

A new input format is a module with a class, and one line in `registry.py`.
"""
