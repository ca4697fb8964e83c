"""Dead letters, written into the sink's output by its present spec."""
