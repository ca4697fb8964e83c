"""Records from objects back into a topic."""
