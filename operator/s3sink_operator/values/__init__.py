"""Values that the rooms of the operator hand to each other. No client, no clock, no network."""
