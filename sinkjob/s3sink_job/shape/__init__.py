"""Decoded records as rows of the output: columns, lines or raw values, with meta columns or in an envelope."""
