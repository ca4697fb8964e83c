"""A package, so that its conftest's fixtures end with its last test."""
