"""What every room may use: errors, secrets, spilled data, times."""
