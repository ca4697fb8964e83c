"""What a driver reports: `/status`, `/metrics`, `/healthz`, logs, and a line on the terminal."""
