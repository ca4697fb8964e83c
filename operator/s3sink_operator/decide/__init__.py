"""From what was observed to what shall be: pure functions, so that every case can be a test."""

from s3sink_operator.decide.decision import decide
from s3sink_operator.decide.status import confess

__all__ = ["confess", "decide"]
