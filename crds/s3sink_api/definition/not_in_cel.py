"""Everything that the parser refuses and the API server cannot refuse, with the reason for each.

Such a resource is stored, and the operator reports `Accepted=False` with the parser's message. There is no list for
the other direction: the API server accepts everything that the parser accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from s3sink_api.spec import FieldError


@dataclass(frozen=True)
class NotInCel:
    """The parser's errors at fields that match `path`, with messages that match `message`."""

    path: str
    message: str
    why: str

    def covers(self, error: FieldError) -> bool:
        return bool(re.fullmatch(self.path, error.path) and re.fullmatch(self.message, error.message))


NOT_IN_CEL: tuple[NotInCel, ...] = (
    NotInCel(
        r".*",
        r"must not be null; leave the field out",
        "The API server drops nulls before validation. None is ever stored; only files for the CLI can have them.",
    ),
    NotInCel(
        r"spec\.source\.topicPattern",
        r"must be a regular expression.*",
        "CEL has no function that checks whether a text is a regular expression, of Java or of any other dialect.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.topicPattern",
        r"must be a regular expression.*",
        "As above.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.topics\[[0-9]+\]",
        r".* is not among spec\.source\.topics",
        "Looking up 16,000 topics of routes in 5,000 topics costs 100 times what the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.(routes\[[0-9]+\]\.)?source\.(key|value)\.schema",
        r"(is not JSON|must be a JSON Schema|has no properties|has a property|\$).*",
        "The text is a JSON document, and CEL cannot parse JSON.",
    ),
    NotInCel(
        r"spec\.(source\.startingOffsets|source\.endingOffsets|reset\.to)\.offsets\[[0-9]+\]\.topic",
        r".* is not among spec\.source\.topics",
        "Looking up 10,000 offsets in 5,000 topics costs 100 times what the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.source\.endingOffsets\.timestamp",
        r"must be later than startingOffsets\.timestamp.*",
        "A time may be a date alone, which CEL cannot read as a time.",
    ),
    NotInCel(
        r"spec\.source\.endingOffsets\.offsets\[[0-9]+\]\.offset",
        r"must not be below [0-9]+, where startingOffsets begins.*",
        "Comparing two lists of 10,000 offsets costs 100 times what the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.topics\[[0-9]+\]",
        r".* is already in routes\[[0-9]+\]; name each topic once",
        "Comparing every topic of every route with every other costs 1,000 times what the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.layout\.partitionBy\[[0-9]+\]\.format",
        r".*= is already the name of another folder; set a different one with format",
        "The names of folders are within a date pattern, which CEL cannot parse.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.layout\.partitionBy\[[0-9]+\].*",
        r"(needs fields|must not be Wallclock|repeats item|.*= is already the name of another folder).*",
        "The items of 64 routes, their own or inherited, cost 100 times what the API server allows all rules together.",
    ),
    NotInCel(
        r"spec\.layout\.topicReplacement\.pattern",
        r"must be a regular expression.*",
        "As for topicPattern.",
    ),
    NotInCel(
        r"spec\.layout\.topicNames\[[0-9]+\]\.(as|topic)",
        r".*( is already the folder of topic | would be the folder of topics | is the folder of the state"
        r"| is not among spec\.source\.topics).*",
        "Comparing 250 names with each other, or with 5,000 topics, costs more than the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.format\.envelope\.keyAs",
        r"must be Plain, since .*",
        "CEL cannot merge the sections of a route with those of the sink.",
    ),
    NotInCel(
        r"spec\.source\.onUnroutedTopic",
        r".* is in no route.*",
        "Looking up 5,000 topics in 16,000 topics of routes costs 100 times what the API server allows a rule.",
    ),
    NotInCel(
        r"spec\.(routes\[[0-9]+\]\.)?transform\.(where|select(\[[0-9]+\])?)",
        r"(is not a SQL expression|must be a single expression|is a condition|has the name|repeats \*|['\"]).*",
        "The text is SQL, and CEL cannot parse SQL.",
    ),
    NotInCel(
        r"spec\.routes\[[0-9]+\]\.transform\.(unwrap|steps|select)",
        r"must be left out, since .* write values as they are.*",
        "Whether a route sets or inherits both, of 64 routes, costs more than the API server allows all rules.",
    ),
    NotInCel(
        r".*",
        r"is too large or too deeply nested; make the document smaller",
        "A rule sees neither the depth nor the size of the document. This limit is for files; the API server has its"
        " own limits for requests.",
    ),
)


def only_the_parser_refuses(error: FieldError) -> bool:
    """Whether the API server cannot refuse this."""
    return any(row.covers(error) for row in NOT_IN_CEL)
