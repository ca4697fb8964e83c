"""The objects that run a sink, as documents for server-side apply."""
