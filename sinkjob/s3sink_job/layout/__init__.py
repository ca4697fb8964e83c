"""Where records go: folders, groups, object keys, time patterns."""
