"""A flush as data: rules, plan, state, manifest and transitions. Pure: no network, and the clock is an argument."""
