"""What a flush is, as data: plan, state, manifest and the transitions between them. Pure, clock injected."""
