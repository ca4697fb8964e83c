"""Output format Json: one JSON value on each line."""

from __future__ import annotations

from s3sink_job.formats.line_format import LineFormat
from s3sink_job.shape.settings import RowKind


class JsonFormat(LineFormat):
    name = "Json"
    extension = ".jsonl"
    content_type = "application/x-ndjson"
    rows = RowKind.JSON_LINES
