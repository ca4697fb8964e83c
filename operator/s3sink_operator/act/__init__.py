"""Carrying out a decision: apply, delete, write the status and its events. Every step is safe to repeat."""
