"""What the parser refuses and the API server cannot: the one list of it, with the reason for each.

Such a resource is stored, and the operator answers with `Accepted=False` and the parser's words. There is no list
for the other way round: what the parser takes the API server takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from s3sink_job.spec import FieldError


@dataclass(frozen=True)
class Unseen:
    """The parser's errors at fields that match `path`, with messages that match `message`."""

    path: str
    message: str
    why: str

    def covers(self, error: FieldError) -> bool:
        return bool(re.fullmatch(self.path, error.path) and re.fullmatch(self.message, error.message))


UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        r".*",
        r"must not be null; leave the field out",
        "The API server drops nulls before it looks: none is ever stored, and only files read by the CLI hold any.",
    ),
    Unseen(
        r"spec\.source\.topicPattern",
        r"must be a regular expression.*",
        "The pattern is Java's, and CEL has no function that tells whether a text is a pattern in any dialect.",
    ),
    Unseen(
        r"spec\.routes\[[0-9]+\]\.topicPattern",
        r"must be a regular expression.*",
        "As above.",
    ),
    Unseen(
        r"spec\.routes\[[0-9]+\]\.topics\[[0-9]+\]",
        r".* is not among spec\.source\.topics",
        "16,000 topics of routes looked up in 5,000 cost 100 times what the API server allows a rule.",
    ),
    Unseen(
        r"spec\.source\.(key|value)\.schema",
        r"(is not JSON|must be a JSON Schema|has no properties|has a property|\$).*",
        "The text is a JSON document, and CEL reads none.",
    ),
    Unseen(
        r"spec\.(source\.startingOffsets|reset\.to)\.offsets\[[0-9]+\]\.topic",
        r".* is not among spec\.source\.topics",
        "10,000 offsets looked up in 5,000 topics cost 100 times what the API server allows a rule.",
    ),
    Unseen(
        r"spec\.routes\[[0-9]+\]\.topics\[[0-9]+\]",
        r".* goes to routes\[[0-9]+\] already; name it once",
        "Every topic of every route compared with every other costs 1,000 times what the API server allows a rule.",
    ),
    Unseen(
        r"spec\.layout\.partitionBy\[[0-9]+\]\.format",
        r".*= is the name of another folder already; set another with format",
        "The names of folders stand within a date pattern, which CEL cannot take apart.",
    ),
    Unseen(
        r"spec\.routes\[[0-9]+\]\.layout\.partitionBy\[[0-9]+\].*",
        r"(needs fields|must not be Wallclock|.*= is the name of another folder already).*",
        "The items of 64 routes, their own or inherited, cost 100 times what the API server allows all rules together.",
    ),
    Unseen(
        r".*",
        r"holds too much; write a smaller document",
        "Depth and the sum of all values: rules see neither. It protects the parser from files, since the API server"
        " has limits of its own for requests.",
    ),
)


def unseen(error: FieldError) -> bool:
    """Whether the API server is known to be unable to refuse this."""
    return any(row.covers(error) for row in UNSEEN)
