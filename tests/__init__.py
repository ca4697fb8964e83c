"""A package, since some of its folders are."""
