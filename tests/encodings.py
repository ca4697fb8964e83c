"""Encodings for tests, by the flat names that documents use."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from s3sink_job.formats.settings import CsvOptions, Output, ParquetOptions
from s3sink_job.layout.settings import ObjectLayout
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.encoding_documents import encoding_from_doc, whole_doc

PLAIN = {"format": "Json", "codec": "None", "level": None, "meta": "None", "key": "String", "value": "Json"}


def encoding(**fields: Any) -> Encoding:
    return _encoding({**PLAIN, **fields})


def changed(wanted: Encoding, **fields: Any) -> Encoding:
    return _encoding({**whole_doc(wanted), **fields})


def _encoding(doc: dict[str, Any]) -> Encoding:
    layout = doc.get("layout")
    return encoding_from_doc({**doc, "layout": asdict(layout)} if isinstance(layout, ObjectLayout) else doc)


def output(format: str, codec: str = "None", level: int | None = None, **options: Any) -> Output:
    """With options of Parquet or CSV by their own names."""
    parquet = {name: value for name, value in options.items() if name in ParquetOptions.__dataclass_fields__}
    csv = {name: value for name, value in options.items() if name in CsvOptions.__dataclass_fields__}
    assert {*parquet, *csv} == {*options}
    return Output(format, codec, level, ParquetOptions(**parquet), CsvOptions(**csv))


def changed_output(wanted: Output, **fields: Any) -> Output:
    flat = {"format": wanted.format, "codec": wanted.codec, "level": wanted.level}
    return output(**{**flat, **asdict(wanted.parquet), **asdict(wanted.csv), **fields})
