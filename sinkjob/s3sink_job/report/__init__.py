"""What the driver tells the world: `/status`, `/metrics`, `/healthz`, and a person at a terminal."""
