"""`spec.routes`: topics with settings of their own. What a route does not set it inherits from the sink."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, TypedDict, TypeVar, get_type_hints

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule
from s3sink_api.spec.destination import Destination
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.flush import Flush
from s3sink_api.spec.format import OPTION_SECTIONS, Columns, Csv, Envelope, Format, Parquet, SchemaEvolution
from s3sink_api.spec.layout import Layout, Padding
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.source import TOPICS_OR_PATTERN_CEL, RouteSource, Source, Topics, topics_or_pattern
from s3sink_api.spec.text_types import Regex
from s3sink_api.spec.transform import Transform

T = TypeVar("T")


class Override(Generic[T]):
    """What a route sets of a section: `Override[Layout]` has the fields of Layout, None where the route inherits.

    A section within the section is overridden in the same way, unless it is optional: then it is taken whole.
    """

    def __class_getitem__(cls, section: Any) -> Any:
        return _override_of(section)

    def over(self, base: T) -> T:
        """The base with the fields that are set. Raises a Refusal if the section refuses them together."""
        changes = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Override):
                try:
                    value = value.over(getattr(base, field.name))
                except Refusal as refusal:
                    raise refusal.below(_in_manifest(base, field.name)) from None
            if value is not None:
                changes[field.name] = value
        try:
            return replace(base, **changes)  # type: ignore[type-var]
        except ValidationError as error:
            raise _refusal_of(error, base) from None


@cache
def _override_of(section: Any) -> Any:
    hints = get_type_hints(section, include_extras=True)
    names = getattr(section, "OF_ROUTES", tuple(section.__pydantic_fields__))
    kinds = {name: _override_of(hints[name]) if is_dataclass(hints[name]) else hints[name] for name in names}
    namespace = {
        "__annotations__": {name: kind | None for name, kind in kinds.items()},
        "__doc__": f"What a route sets of {section.__name__}.",
        "__module__": __name__,
        **dict.fromkeys(names),
    }
    return dataclass(frozen=True, kw_only=True, config=CONFIG)(type(f"Route{section.__name__}", (Override,), namespace))


def _refusal_of(error: ValidationError, section: Any) -> Refusal:
    found = error.errors(include_url=False)[0]
    refusal = found.get("ctx", {}).get("error")
    if not isinstance(refusal, Refusal):
        # Each value was read already, so this is no mistake in the manifest.
        raise error
    at = (_in_manifest(section, part) for part in found["loc"])
    return refusal.below(*at, value=found["input"])


def _in_manifest(section: Any, name: str | int) -> str | int:
    info = section.__pydantic_fields__.get(name)
    return str(info.alias) if info else name


# By name, so that a spec with routes can be pickled.
RouteDestination = Override[Destination]
RoutePadding = Override[Padding]
RouteLayout = Override[Layout]
RouteCsv = Override[Csv]
RouteParquet = Override[Parquet]
RouteColumns = Override[Columns]
RouteEnvelope = Override[Envelope]
RouteSchemaEvolution = Override[SchemaEvolution]
RouteFormat = Override[Format]
RouteFlush = Override[Flush]


class Sections(TypedDict, total=False):
    """Fields of a spec that are parsed and valid."""

    source: Source
    destination: Destination
    run: str
    mode: str
    layout: Layout
    format: Format
    flush: Flush
    transform: Transform | None
    routes: tuple[Route, ...]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Route:
    topic_pattern: Regex | None = None
    topics: Annotated[Topics, Field(max_length=250, validate_default=True)] = ()
    source: RouteSource | None = None
    destination: Override[Destination] | None = None
    layout: Override[Layout] | None = None
    format: Override[Format] | None = None
    flush: Override[Flush] | None = None
    transform: Transform | None = None

    @field_validator("topics")
    @classmethod
    def _topics_or_pattern(cls, topics: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return topics_or_pattern(topics, info)

    CEL: ClassVar[tuple[Rule, ...]] = TOPICS_OR_PATTERN_CEL

    def over(self, sections: Sections) -> dict[str, Any]:
        """The sections that a route may override, as they are for its topics.

        The path of a Refusal begins at the route.
        """
        merged: dict[str, Any] = {}
        for name in ("source", "destination", "layout", "format", "flush"):
            base, own = sections.get(name), getattr(self, name)
            if isinstance(base, Format) and own is not None:
                base = _without_options(base, own.type)
            try:
                merged[name] = base if base is None or own is None else own.over(base)
            except Refusal as refusal:
                raise refusal.below(name) from None
        merged["transform"] = self.transform or sections.get("transform")
        return {name: section for name, section in merged.items() if section is not None}


def _without_options(format: Format, kind: str | None) -> Format:
    """Options of one format are not inherited by another format."""
    if kind in {None, format.type}:
        return format
    default = Format()
    return replace(format, **{section: getattr(default, section) for section in OPTION_SECTIONS})
