"""Output format Text: one value on each line."""

from __future__ import annotations

from s3sink_job.formats.line_format import LineFormat
from s3sink_job.shape.settings import RowKind


class TextFormat(LineFormat):
    name = "Text"
    extension = ".txt"
    content_type = "text/plain; charset=utf-8"
    rows = RowKind.TEXT_LINES
