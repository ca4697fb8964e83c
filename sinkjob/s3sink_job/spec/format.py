"""`spec.format`: what is inside the objects, and how it is compressed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.quantities import Size

FormatType = Literal["Parquet", "Avro", "Json", "Csv", "Text", "Bytes", "Orc"]
Codec = Literal["None", "Gzip", "Snappy", "Lz4", "Zstd", "Brotli", "Bzip2", "Deflate", "Xz"]
CsvQuote = Literal["Minimal", "All", "None"]
MetaColumns = Literal["None", "Kafka", "Quix", "Airbyte"]
EvolutionMode = Literal["None", "Backward", "Forward", "Full"]
OnSchemaChange = Literal["Merge", "Roll"]

_LINES: tuple[Codec, ...] = ("None", "Gzip", "Lz4", "Zstd", "Brotli", "Bzip2", "Xz")
CODECS: dict[FormatType, tuple[Codec, ...]] = {
    "Parquet": ("None", "Gzip", "Snappy", "Lz4", "Zstd", "Brotli"),
    "Avro": ("None", "Snappy", "Zstd", "Bzip2", "Deflate", "Xz"),
    "Json": _LINES,
    "Csv": _LINES,
    "Text": _LINES,
    "Bytes": ("None", "Gzip", "Zstd"),
    "Orc": ("None", "Snappy", "Lz4", "Zstd", "Deflate"),
}
LEVELS: dict[Codec, tuple[int, int]] = {
    "Gzip": (0, 9),
    "Lz4": (1, 12),
    "Zstd": (1, 22),
    "Brotli": (0, 11),
    "Bzip2": (1, 9),
    "Deflate": (0, 9),
    "Xz": (0, 9),
}
NO_DELIMITERS = ('"', "\r", "\n", "\0")
_COMPRESSED_UNLESS_TOLD = frozenset({"Parquet", "Avro", "Orc"})
# These write values as they come: there is no column beside them.
WITHOUT_COLUMNS: tuple[FormatType, ...] = ("Text", "Bytes")
WITHOUT_ENVELOPE: tuple[FormatType, ...] = ("Csv", *WITHOUT_COLUMNS)
FLATTEN_OF_WHAT = "is only for columns.meta Airbyte, whose data it lays out in columns"


def _not_lzo(value: object) -> object:
    if isinstance(value, str) and value.lower() in {"lzo", "lz0"}:
        raise Refusal("Lzo is refused, since it has no maintained writer; use Zstd or Lz4", show=False)
    return value


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Compression:
    codec: Annotated[Codec, BeforeValidator(_not_lzo)]
    level: int | None = None

    @field_validator("level")
    @classmethod
    def _level_of_the_codec(cls, level: int | None, info: ValidationInfo) -> int | None:
        codec = info.data.get("codec")
        if level is None or codec is None:
            return level
        if codec not in LEVELS:
            raise Refusal(f"must be left out, since {codec} has no levels")
        low, high = LEVELS[codec]
        if not low <= level <= high:
            raise Refusal(f"must lie between {low} and {high} for {codec}")
        return level


def check_codec(kind: FormatType, compression: Compression, at: tuple[str | int, ...] = ()) -> None:
    """Refuses a codec, or a level, that the format does not have; `at` leads to the compression."""
    if compression.codec not in CODECS[kind]:
        taken = ", ".join(CODECS[kind])
        raise Refusal(f"{kind} takes {taken}, got {compression.codec}", at=(*at, "codec"), show=False)
    if kind == "Orc" and compression.level is not None:
        raise Refusal("must be left out, since Orc has no levels", at=(*at, "level"), show=False)


def _separates(delimiter: str) -> str:
    if delimiter in NO_DELIMITERS:
        raise Refusal('must not be a quote or a line break; write "," or ";" or "\\t"', show=False)
    return delimiter


Delimiter = Annotated[str, Field(min_length=1, max_length=1), AfterValidator(_separates)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Csv:
    header: bool = True
    delimiter: Delimiter = ","
    quote: CsvQuote = "Minimal"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Parquet:
    row_group_bytes: Size = 64 * 2**20
    dictionary: bool = True
    statistics: bool = True


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Columns:
    meta: MetaColumns = "None"
    flatten: bool = False

    @field_validator("flatten")
    @classmethod
    def _flat_data_of_airbyte(cls, flatten: bool, info: ValidationInfo) -> bool:
        if flatten and info.data.get("meta", "Airbyte") != "Airbyte":
            raise Refusal(FLATTEN_OF_WHAT, show=False)
        return flatten


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Envelope:
    enabled: bool = False
    key: bool = True
    value: bool = True
    headers: bool = True
    metadata: bool = True

    @property
    def empty(self) -> bool:
        return not (self.key or self.value or self.headers or self.metadata)


def check_options(kind: FormatType, options: Csv | Parquet, at: tuple[str | int, ...] = ()) -> None:
    """Refuses options of another format, unless they say what holds anyway; `at` leads to them."""
    own = type(options).__name__
    if kind != own and options != type(options)():
        raise Refusal(f"is only for format.type {own}, and it is {kind}", at=at, show=False)


def check_columns(kind: FormatType, columns: Columns, at: tuple[str | int, ...] = ()) -> None:
    """Refuses columns beside values that stand alone; `at` leads to the columns."""
    if kind in WITHOUT_COLUMNS and columns.meta != "None":
        message = f"must be None, since {kind} writes values alone; use Json, got {columns.meta}"
        raise Refusal(message, at=(*at, "meta"), show=False)


def check_envelope(kind: FormatType, columns: Columns, envelope: Envelope, at: tuple[str | int, ...] = ()) -> None:
    """Refuses an envelope where there is no place for one; `at` leads to it."""
    if not envelope.enabled:
        return
    if kind in WITHOUT_ENVELOPE:
        message = f"must be false, since {kind} holds no envelope; use Json, Parquet, Avro or Orc"
        raise Refusal(message, at=(*at, "enabled"), show=False)
    if columns.meta != "None":
        message = f"must be false, since columns.meta is {columns.meta}; keep one of them"
        raise Refusal(message, at=(*at, "enabled"), show=False)
    if envelope.empty:
        raise Refusal("must keep one of key, value, headers and metadata", at=(*at, "value"), show=False)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SchemaEvolution:
    mode: EvolutionMode = "Backward"
    on_change: OnSchemaChange = "Merge"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Format:
    type: FormatType = "Parquet"
    compression: Compression | None = None
    csv: Csv = Csv()
    parquet: Parquet = Parquet()
    columns: Columns = Columns()
    envelope: Envelope = Envelope()
    schema_evolution: SchemaEvolution = SchemaEvolution()

    @property
    def codec(self) -> Codec:
        if self.compression is not None:
            return self.compression.codec
        return "Zstd" if self.type in _COMPRESSED_UNLESS_TOLD else "None"

    @property
    def level(self) -> int | None:
        return None if self.compression is None else self.compression.level

    @field_validator("compression")
    @classmethod
    def _codec_of_the_format(cls, value: Compression | None, info: ValidationInfo) -> Compression | None:
        kind: FormatType | None = info.data.get("type")
        if value is not None and kind is not None:
            check_codec(kind, value)
        return value

    @field_validator("csv", "parquet")
    @classmethod
    def _options_of_the_format(cls, value: Csv | Parquet, info: ValidationInfo) -> Csv | Parquet:
        if "type" in info.data:
            check_options(info.data["type"], value)
        return value

    @field_validator("columns")
    @classmethod
    def _columns_of_the_format(cls, columns: Columns, info: ValidationInfo) -> Columns:
        if "type" in info.data:
            check_columns(info.data["type"], columns)
        return columns

    @field_validator("envelope")
    @classmethod
    def _envelope_of_the_format(cls, envelope: Envelope, info: ValidationInfo) -> Envelope:
        if "type" in info.data and "columns" in info.data:
            check_envelope(info.data["type"], info.data["columns"], envelope)
        return envelope
