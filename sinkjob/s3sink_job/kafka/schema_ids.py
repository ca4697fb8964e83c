"""The headers in which serializers put the id of a schema, as one small column for keys and one for values.

Two more columns have the names of Protobuf messages that Apicurio's serializers put into a header beside the id. Only
topics with such records read them.

Spark takes the ids out of the headers: see `single_headers.py` for why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as f

from s3sink_job.kafka.single_headers import last_header

SCHEMA_IDS: Mapping[str, str] = {"key": "key_schema_id", "value": "value_schema_id"}
"""The columns, by the part of a record."""
MESSAGES: Mapping[str, str] = {"key": "key_message", "value": "value_message"}
"""The same for the names of messages."""
_MESSAGE_HEADERS = {"key": "apicurio.protobuf.type.key", "value": "apicurio.protobuf.type"}
GLOBAL_ID, CONTENT_ID = b"g", b"c"
"""In front of an id of Apicurio. Ids of Confluent begin with 0 or 1."""


def schema_id(part: str) -> Column:
    """The bytes that name the schema; null for a record without such a header. Records without headers cost nothing."""
    content_id, global_id = (
        f"concat(X'{mark.hex()}', {last_header(f'apicurio.{part}.{name}')})"
        for mark, name in ((CONTENT_ID, "contentId"), (GLOBAL_ID, "globalId"))
    )
    found = f"coalesce({last_header(f'__{part}_schema_id')}, {content_id}, {global_id})"
    return f.expr(f"IF(headers IS NULL, NULL, {found})")


def message(part: str) -> Column:
    """The name of the message as bytes; null for a record without such a header."""
    return f.expr(f"IF(headers IS NULL, NULL, {last_header(_MESSAGE_HEADERS[part])})")


def message_in_headers(part: str, headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """The same of one record, without Spark."""
    return dict(headers).get(_MESSAGE_HEADERS[part])


def id_in_headers(part: str, headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """The same of one record, without Spark."""
    last = dict(headers)
    if (found := last.get(f"__{part}_schema_id")) is not None:
        return found
    for mark, name in ((CONTENT_ID, "contentId"), (GLOBAL_ID, "globalId")):
        if (found := last.get(f"apicurio.{part}.{name}")) is not None:
            return mark + found
    return None
