"""What the status of a sink says, and the events for its changes."""
