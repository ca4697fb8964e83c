"""The types of columns: how inferred ones widen, and how rows follow."""
