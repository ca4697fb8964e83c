"""A model of decoding and shaping: the expected rows, record by record, in plain Python."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from s3sink_api.spec import MORE
from s3sink_job.shape.settings import ENVELOPE
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, Record
from tests.encodings import changed, encoding

PARTITION, FIRST = 3, 70
GENERATION = 2
KAFKA = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
QUIX = ("_timestamp", "_key", "_value")
AIRBYTE = ("_airbyte_ab_id", "_airbyte_emitted_at", "_airbyte_data")
FORMATS = ("Json", "Parquet", "Avro", "Orc", "Csv")
SOURCES = ("Json", "String", "Bytes")
ENVELOPES = [parts for count in range(1, 5) for parts in combinations(ENVELOPE, count)]


class Refused(Exception):
    """The record cannot be a row."""


def shapes(format: str) -> list[Encoding]:
    """All shapes of the format."""
    plain = encoding(format=format)
    metas = [changed(plain, meta=meta) for meta in ("None", "Kafka", "Quix", "Airbyte")]
    flat = [changed(plain, meta=meta, flatten=True) for meta in ("Airbyte", "Quix")]
    if format == "Csv":
        return [*metas, *flat]
    whole = changed(plain, envelope=ENVELOPE)
    others = [changed(whole, headers_as="Map"), changed(whole, key_as="Fields")]
    others += [changed(whole, headers_as="Map", key_as="Fields"), changed(whole, envelope=("key",), key_as="Fields")]
    return [*metas, *flat, *(changed(plain, envelope=parts) for parts in ENVELOPES), *others]


def has_key_fields(wanted: Encoding) -> bool:
    return wanted.shape.key_as == "Fields" and wanted.decoding.key == "Json" and wanted.output.format != "Json"


def strictly(value: str) -> Any:
    """The value by RFC 8259, parsed by Python; a field twice is refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    found = json.loads(value, object_pairs_hook=once, parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode()
    return found


def found_in(value: Any, cell: Any) -> bool:
    """Whether a cell equals the value: text holds strings as they are, or the JSON of anything else."""
    if value is None or cell is None:
        return value is cell
    if isinstance(cell, str):
        return bool(cell == value if isinstance(value, str) else json.loads(cell) == value)
    if isinstance(value, dict) and isinstance(cell, dict):
        more = {**cell, **json.loads(cell.get(MORE) or "{}")}
        return set(value) <= set(more) and all(found_in(value.get(name), more[name]) for name in more if name != MORE)
    if isinstance(value, list) and isinstance(cell, list):
        return len(value) == len(cell) and all(map(found_in, value, cell))
    return isinstance(value, bool) == isinstance(cell, bool) and bool(value == cell)


def line_of(record: Record, number: int, wanted: Encoding) -> Any:
    """What a reader of JSON gets of a line."""
    takes = {"value", *wanted.shape.envelope} if not wanted.shape.envelope else set(wanted.shape.envelope)
    value = _json(record.value, wanted.decoding.value) if "value" in takes else None
    if wanted.shape.envelope:
        parts = {
            "key": lambda: _json(record.key, wanted.decoding.key),
            "value": lambda: value,
            "headers": lambda: _header_map(record) if wanted.shape.headers_as == "Map" else _headers(record),
            "metadata": lambda: _place(record, number),
        }
        return {part: parts[part]() for part in wanted.shape.envelope}
    match wanted.shape.meta:
        case "None":
            return value
        case "Airbyte":
            start = {AIRBYTE[0]: id_of(number), AIRBYTE[1]: record.millis}
            if not (wanted.shape.flatten and wanted.decoding.value == "Json" and isinstance(value, dict)):
                return {**start, AIRBYTE[2]: value}
            return {**start, **_without(value, AIRBYTE)}
        case "Quix":
            start = {"_timestamp": record.millis, "_key": _json(record.key, wanted.decoding.key)}
            if not (wanted.shape.flatten and wanted.decoding.value == "Json" and isinstance(value, dict)):
                return {**start, "_value": value}
            return {**start, **_without(value, QUIX)}
        case _:
            place = {f"_{name}": inner for name, inner in _place(record, number).items()}
            start = {"_key": _json(record.key, wanted.decoding.key), **place, "_headers": _headers(record)}
            return {**start, **(_without(value, KAFKA) if isinstance(value, dict) else {"_value": value})}


def row_of(record: Record, number: int, wanted: Encoding) -> dict[str, Any]:
    """The cells of a row by name; fields of the value are unchanged, to be compared by `found_in`."""
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=record.millis)
    place = {**_place(record, number), "timestamp": time}
    headers = [{"key": key, "value": value} for key, value in record.headers or []]
    source = wanted.decoding.value
    if wanted.shape.envelope:
        parts = {
            "key": lambda: _fields(record.key) if has_key_fields(wanted) else _cell(record.key, wanted.decoding.key),
            "value": lambda: _fields(record.value) if source == "Json" else _cell(record.value, source),
            "headers": lambda: list(last(record).items()) if wanted.shape.headers_as == "Map" else headers,
            "metadata": lambda: place,
        }
        return {part: parts[part]() for part in wanted.shape.envelope}
    match wanted.shape.meta:
        case "Airbyte":
            start = {AIRBYTE[0]: id_of(number), AIRBYTE[1]: record.millis if wanted.output.format == "Csv" else time}
            if wanted.shape.flatten and wanted.decoding.value == "Json":
                return {**start, **_without(_filled(_fields(record.value)), AIRBYTE)}
            return {**start, AIRBYTE[2]: _json_text(record.value, wanted.decoding.value)}
        case "Quix":
            start = {"_timestamp": record.millis, "_key": _cell(record.key, wanted.decoding.key)}
            if wanted.shape.flatten and wanted.decoding.value == "Json":
                return {**start, **_without(_filled(_fields(record.value)), QUIX)}
            return {**start, "_value": _cell(record.value, wanted.decoding.value)}
    start = {}
    if wanted.shape.meta == "Kafka":
        key = _cell(record.key, wanted.decoding.key)
        start = {"_key": key, **{f"_{name}": inner for name, inner in place.items()}, "_headers": headers}
    if wanted.decoding.value != "Json":
        return {**start, "value": _cell(record.value, wanted.decoding.value)}
    fields = _filled(_fields(record.value))
    return {**start, **(_without(fields, KAFKA) if start else fields)}


def id_of(number: int) -> str:
    namespace = uuid.uuid3(uuid.NAMESPACE_DNS, "s3sink.dev")
    return str(uuid.uuid3(namespace, f"{TOPIC}/{GENERATION}/{PARTITION}/{FIRST + number}"))


def _place(record: Record, number: int) -> dict[str, Any]:
    return {"topic": TOPIC, "partition": PARTITION, "offset": FIRST + number, "timestamp": record.millis}


def _headers(record: Record) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for key, value in record.headers or []:
        try:
            found.append({"key": key, "value": None if value is None else value.decode()})
        except UnicodeDecodeError:
            found.append({"key": key, "base64": base64.b64encode(value or b"").decode()})
    return found


def last(record: Record) -> dict[str, bytes | None]:
    """The last header of each name, in the order of these."""
    found: dict[str, bytes | None] = {}
    for key, value in record.headers or []:
        found.pop(key, None)
        found[key] = value
    return found


def _header_map(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in last(record).items():
        try:
            found[key] = None if value is None else value.decode()
        except UnicodeDecodeError:
            found[key] = {"base64": base64.b64encode(value or b"").decode()}
    return found


def _json(raw: bytes | None, format: str) -> Any:
    text = _json_text(raw, format)
    return None if text is None else json.loads(text)


def _json_text(raw: bytes | None, format: str) -> str | None:
    if raw is None:
        return None
    if format == "Bytes":
        return json.dumps(base64.b64encode(raw).decode())
    cell = _cell(raw, format)
    assert isinstance(cell, str)
    return json.dumps(cell, ensure_ascii=False) if format == "String" else cell


def _cell(raw: bytes | None, format: str) -> str | bytes | None:
    if raw is None or format == "Bytes":
        return raw
    try:
        text = raw.decode()
        if format == "Json":
            strictly(text)
            return text.replace("\n", " ").replace("\r", " ")
    except ValueError as error:
        raise Refused(str(error)) from None
    return text


def _fields(raw: bytes | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        value = strictly(raw.decode())
    except ValueError as error:
        raise Refused(str(error)) from None
    if not isinstance(value, dict) or MORE in value:
        raise Refused("no object")
    return value


def _filled(fields: dict[str, Any] | None) -> dict[str, Any]:
    """In a column a field that is null and a missing one are the same."""
    return {name: value for name, value in (fields or {}).items() if value is not None}


def _without(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if clashes := [name for name in names if name in fields]:
        raise Refused(f"has {clashes}")
    return fields
