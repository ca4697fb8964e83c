"""`spec.format`: what is inside the objects, and how it is compressed."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, TypeAdapter, ValidationInfo, field_validator, model_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Cel, Rule, forbidden, is_in, is_not_in, listed, literal
from s3sink_api.formats import CODECS, DEFAULT_FORMAT, FORMATS, LEVELS, Codec, FormatType, formats_where
from s3sink_api.spec.checked_types import after, before
from s3sink_api.spec.field_errors import Refusal, alternatives
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Size

CsvQuote = Literal["Minimal", "All", "None"]
MetaColumns = Literal["None", "Kafka", "Quix", "Airbyte"]
EvolutionMode = Literal["None", "Backward", "Forward", "Full"]
HeadersAs = Literal["List", "Map"]
KeyAs = Literal["Plain", "Fields"]
OnSchemaChange = Literal["Merge", "Roll"]
ParquetTimestamps = Literal["Unchanged", "Micros"]

_NO_LEVELS = tuple(codec for codec in get_args(Codec) if codec not in LEVELS)
_NO_DELIMITERS = ('"', "\r", "\n", "\0")
WITHOUT_LEVELS = formats_where(lambda traits: not traits.levels)
WITHOUT_COLUMNS = formats_where(lambda traits: not traits.meta_columns)
WITHOUT_ENVELOPE = formats_where(lambda traits: not traits.envelope)
WITH_COLUMNS = alternatives(formats_where(lambda traits: traits.meta_columns))
WITH_ENVELOPE = alternatives(formats_where(lambda traits: traits.envelope))
OPTION_SECTIONS: dict[str, FormatType] = {traits.options: kind for kind, traits in FORMATS.items() if traits.options}
"""Sections with options of one format, and the name of that format."""
NO_META_COLUMNS_MESSAGE = (
    f"must be None, since {alternatives(WITHOUT_COLUMNS, 'and')} support no meta columns; use {WITH_COLUMNS}"
)
NO_ENVELOPE_MESSAGE = f"must be false, since {', '.join(WITHOUT_ENVELOPE)} support no envelope; use {WITH_ENVELOPE}"
WITH_FLATTEN = ("Airbyte", "Quix")
FLATTEN_MESSAGE = (
    "is only for columns.meta Airbyte and Quix: it writes the fields of _airbyte_data or _value as columns"
)


def _not_lzo(value: object) -> object:
    if isinstance(value, str) and value.lower() in {"lzo", "lz0"}:
        raise Refusal("Lzo is not supported, since it has no maintained writer; use Zstd or Lz4", show=False)
    return value


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Compression:
    codec: Annotated[Codec, before(_not_lzo)]
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
            raise Refusal(f"must be between {low} and {high} for {codec}")
        return level

    CEL: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.level) || {is_not_in('self.codec', _NO_LEVELS)}",
            f"must be left out, since {alternatives(_NO_LEVELS, 'and')} have no levels",
            at=".level",
        ),
        *(
            Rule(
                f"!has(self.level) || self.codec != '{codec}' || (self.level >= {low} && self.level <= {high})",
                f"must be between {low} and {high} for {codec}",
                at=".level",
            )
            for codec, (low, high) in LEVELS.items()
        ),
    )


_DELIMITER_MESSAGE = 'must not be a quote or a line break; write "," or ";" or "\\t"'


def _separates(delimiter: str) -> str:
    if delimiter in _NO_DELIMITERS:
        raise Refusal(_DELIMITER_MESSAGE, show=False)
    return delimiter


Delimiter = Annotated[
    str,
    Field(min_length=1, max_length=1),
    after(_separates, Cel(lambda it: f"!({it} in {listed(_NO_DELIMITERS)})", _DELIMITER_MESSAGE)),
]


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
    timestamps: ParquetTimestamps = "Unchanged"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Columns:
    meta: MetaColumns = "None"
    flatten: bool = False

    @field_validator("flatten")
    @classmethod
    def _flat_data(cls, flatten: bool, info: ValidationInfo) -> bool:
        if flatten and info.data.get("meta", "Airbyte") not in WITH_FLATTEN:
            raise Refusal(FLATTEN_MESSAGE, show=False)
        return flatten

    CEL: ClassVar[tuple[Rule, ...]] = (
        forbidden(
            f"!has(self.flatten) || !self.flatten || !has(self.meta) || {is_in('self.meta', WITH_FLATTEN)}",
            FLATTEN_MESSAGE,
            at=".flatten",
        ),
    )


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Envelope:
    enabled: bool = False
    key: bool = True
    value: bool = True
    headers: bool = True
    metadata: bool = True
    headers_as: HeadersAs = "List"
    key_as: KeyAs = "Plain"

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.enabled and not (self.key or self.value or self.headers or self.metadata):
            raise Refusal("must include at least one of key, value, headers and metadata", at=("value",), show=False)
        return self

    CEL: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.enabled) || !self.enabled || "
            + " || ".join(f"(!has(self.{part}) || self.{part})" for part in ("key", "value", "headers", "metadata")),
            "must include at least one of key, value, headers and metadata",
            at=".value",
        ),
    )


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SchemaEvolution:
    mode: EvolutionMode = "Backward"
    on_change: OnSchemaChange = "Merge"


_OPTIONS: dict[str, Csv | Parquet] = {"csv": Csv(), "parquet": Parquet()}
_WRAPPED = "(has(self.envelope) && has(self.envelope.enabled) && self.envelope.enabled)"


def options_are_default(section: str, of: str = "self") -> str:
    """CEL: the options of a format, in a section of `of`, are the defaults."""
    options = _OPTIONS[section]
    written = TypeAdapter(type(options)).dump_python(options, by_alias=True)
    return f"({' && '.join(_is_or_absent(f'{of}.{section}.{name}', value) for name, value in written.items())})"


def _is_or_absent(field: str, value: Any) -> str:
    match value:
        case bool():
            return f"(!has({field}) || {field} == {str(value).lower()})"
        case str():
            return f"(!has({field}) || {field} == {literal(value)})"
        case _:
            return f"(!has({field}) || quantity(string({field})).compareTo(quantity('{value}')) == 0)"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Format:
    type: FormatType = DEFAULT_FORMAT
    compression: Compression | None = None
    csv: Csv = Csv()
    parquet: Parquet = Parquet()
    columns: Columns = Columns()
    envelope: Envelope = Envelope()
    schema_evolution: SchemaEvolution = SchemaEvolution()

    @property
    def codec(self) -> Codec:
        return FORMATS[self.type].default_codec if self.compression is None else self.compression.codec

    @property
    def level(self) -> int | None:
        return None if self.compression is None else self.compression.level

    @field_validator("compression")
    @classmethod
    def _codec_of_the_format(cls, compression: Compression | None, info: ValidationInfo) -> Compression | None:
        kind: FormatType | None = info.data.get("type")
        if compression is None or kind is None:
            return compression
        if compression.codec not in CODECS[kind]:
            message = f"{kind} supports {', '.join(CODECS[kind])}, got {compression.codec}"
            raise Refusal(message, at=("codec",), show=False)
        if compression.level is not None and not FORMATS[kind].levels:
            raise Refusal(f"must be left out, since {kind} has no levels", at=("level",), show=False)
        return compression

    @field_validator(*OPTION_SECTIONS)
    @classmethod
    def _options_of_the_format(cls, options: Csv | Parquet, info: ValidationInfo) -> Csv | Parquet:
        """Options of another format are refused, unless they are the defaults."""
        owner, kind = OPTION_SECTIONS[str(info.field_name)], info.data.get("type")
        if kind not in {None, owner} and options != type(options)():
            raise Refusal(f"is only for format.type {owner}, and it is {kind}", show=False)
        return options

    @field_validator("columns")
    @classmethod
    def _columns_of_the_format(cls, columns: Columns, info: ValidationInfo) -> Columns:
        kind: FormatType | None = info.data.get("type")
        if columns.meta != "None" and kind is not None and not FORMATS[kind].meta_columns:
            message = f"must be None, since {kind} supports no meta columns; use {WITH_COLUMNS}, got {columns.meta}"
            raise Refusal(message, at=("meta",), show=False)
        return columns

    @field_validator("envelope")
    @classmethod
    def _envelope_of_the_format(cls, envelope: Envelope, info: ValidationInfo) -> Envelope:
        kind: FormatType | None = info.data.get("type")
        columns: Columns | None = info.data.get("columns")
        if not envelope.enabled or kind is None or columns is None:
            return envelope
        if not FORMATS[kind].envelope:
            message = f"must be false, since {kind} supports no envelope; use {WITH_ENVELOPE}"
            raise Refusal(message, at=("enabled",), show=False)
        if columns.meta != "None":
            message = f"must be false, since columns.meta is {columns.meta}; keep one of them"
            raise Refusal(message, at=("enabled",), show=False)
        return envelope

    CEL: ClassVar[tuple[Rule, ...]] = (
        *(
            Rule(
                f"!has(self.type) || self.type != '{kind}' || !has(self.compression)"
                f" || self.compression.codec in {listed(codecs)}",
                f"{kind} supports {', '.join(codecs)}",
                at=".compression.codec",
            )
            for kind, codecs in CODECS.items()
        ),
        forbidden(
            f"!has(self.type) || {is_not_in('self.type', WITHOUT_LEVELS)}"
            " || !has(self.compression) || !has(self.compression.level)",
            f"must be left out, since {alternatives(WITHOUT_LEVELS, 'and')} has no levels",
            at=".compression.level",
        ),
        *(
            forbidden(
                f"!has(self.type) || self.type == '{kind}' || !has(self.{section}) || {options_are_default(section)}",
                f"is only for format.type {kind}",
                at=f".{section}",
            )
            for section, kind in OPTION_SECTIONS.items()
        ),
        Rule(
            f"!has(self.type) || {is_not_in('self.type', WITHOUT_COLUMNS)} || self.columns.meta == 'None'",
            NO_META_COLUMNS_MESSAGE,
            at=".columns.meta",
        ),
        Rule(
            f"!has(self.type) || {is_not_in('self.type', WITHOUT_ENVELOPE)} || !{_WRAPPED}",
            NO_ENVELOPE_MESSAGE,
            at=".envelope.enabled",
        ),
        Rule(
            f"!{_WRAPPED} || self.columns.meta == 'None'",
            "must be false if columns.meta is set; keep one of them",
            at=".envelope.enabled",
        ),
    )
