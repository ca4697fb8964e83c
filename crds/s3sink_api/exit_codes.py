"""Exit codes of the job's commands."""

from __future__ import annotations

DONE = 0
FAILED = 1
"""A cause that may go away by itself: try again."""
FINAL = 2
"""A person has to change something first."""
FENCED = 3
"""Another driver of the same sink has taken over."""
SIGNALLED = 128
"""Plus the number of the signal that ended a run before it was complete."""
