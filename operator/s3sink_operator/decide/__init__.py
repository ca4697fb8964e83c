"""From an observation to a decision. Pure functions: no client, no network; the clock is part of the observation."""

from s3sink_operator.decide.desired_state import decide
from s3sink_operator.decide.status.new_status import operator_error_status

__all__ = ["decide", "operator_error_status"]
