"""Rows as bytes of objects: one module for each output format, with its traits, its writer and its reader.

A new output format is a module with a class, and one line in `registry.py`.
"""
