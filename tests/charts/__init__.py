"""A package, so that what its conftest starts ends with its last test."""
