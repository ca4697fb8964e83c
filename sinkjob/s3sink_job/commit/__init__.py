"""The state in the bucket: reading it, the swap that commits, publishing, and repairs."""
