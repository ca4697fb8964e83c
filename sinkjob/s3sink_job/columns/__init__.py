"""Arrow columns: their types, how these widen, and functions on whole columns."""
