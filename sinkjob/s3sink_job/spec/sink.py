"""The resource itself: metadata and the whole spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.destination import Destination
from s3sink_job.spec.errors import Errors
from s3sink_job.spec.flush import Flush
from s3sink_job.spec.format import (
    FLATTEN_OF_WHAT,
    Columns,
    Csv,
    Format,
    Parquet,
    check_codec,
    check_columns,
    check_envelope,
    check_options,
)
from s3sink_job.spec.layout import Layout, check_folders, check_paths, check_single
from s3sink_job.spec.model import CONFIG, LENIENT
from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.routes import Route, over
from s3sink_job.spec.schedule import Schedule
from s3sink_job.spec.source import FromEarliest, Source, StartingOffsets, check_start
from s3sink_job.spec.spark import Spark
from s3sink_job.spec.texts import Label, ShortText, SinkName, Text

State = Literal["Running", "Paused", "Stopped"]
Run = Literal["Continuous", "Once", "Scheduled"]
Mode = Literal["Append", "FullRefresh"]
Delivery = Literal["ExactlyOnce", "AtLeastOnce"]
NullValues = Literal["Write", "Skip", "Fail", "Separate"]


@dataclass(frozen=True, kw_only=True, config=LENIENT)
class Metadata:
    name: SinkName
    namespace: Label = "default"
    uid: str = ""
    generation: Annotated[int, Field(ge=0)] = 1
    creation_timestamp: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Reset:
    nonce: ShortText
    to: StartingOffsets = FromEarliest()


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Transform:
    where: Text | None = None
    select: Annotated[tuple[Text, ...] | None, Field(min_length=1, max_length=500, validate_default=True)] = None

    @field_validator("select")
    @classmethod
    def _does_something(cls, select: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        if select is None and info.data.get("where", "") is None:
            raise Refusal("must be set, unless where is", show=False)
        return select


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Spec:
    source: Source
    destination: Destination
    state: State = "Running"
    run: Run = "Continuous"
    schedule: Annotated[Schedule | None, Field(validate_default=True)] = None
    mode: Mode = "Append"
    reset: Reset | None = None
    layout: Layout = Layout()
    format: Format = Format()
    flush: Flush = Flush()
    delivery: Delivery = "ExactlyOnce"
    null_values: NullValues = "Write"
    transform: Transform | None = None
    routes: Annotated[tuple[Route, ...], Field(max_length=64)] = ()
    errors: Annotated[Errors, Field(validate_default=True)] = Errors()
    spark: Spark = field(default_factory=Spark)

    @property
    def ends(self) -> bool:
        """Whether a driver is done once everything that was there at its start is in the bucket."""
        return self.run != "Continuous"

    @field_validator("destination")
    @classmethod
    def _no_topic_in_the_state(cls, destination: Destination, info: ValidationInfo) -> Destination:
        source: Source | None = info.data.get("source")
        if source is None or destination.prefix:
            return destination
        folder = destination.state_prefix.split("/")[0]
        if folder in source.topics:
            message = f"must be set, since the topic {folder} would share its folder with statePrefix"
            raise Refusal(message, at=("prefix",), show=False)
        return destination

    @field_validator("schedule")
    @classmethod
    def _schedule_of_a_scheduled_run(cls, schedule: str | None, info: ValidationInfo) -> str | None:
        run = info.data.get("run")
        if schedule is None and run == "Scheduled":
            raise Refusal('must be set, since run is Scheduled, such as "0 * * * *"', show=False)
        if schedule is not None and run in {"Continuous", "Once"}:
            raise Refusal(f"is only for run: Scheduled, and run is {run}", show=False)
        return schedule

    @field_validator("mode")
    @classmethod
    def _full_refresh_ends(cls, mode: str, info: ValidationInfo) -> str:
        if mode == "FullRefresh" and info.data.get("run") == "Continuous":
            raise Refusal("FullRefresh needs run: Once or Scheduled, and run is Continuous", show=False)
        return mode

    @field_validator("reset")
    @classmethod
    def _reset_of_our_topics(cls, reset: Reset | None, info: ValidationInfo) -> Reset | None:
        source: Source | None = info.data.get("source")
        if reset is not None and source is not None:
            check_start(reset.to, source.topics, ("to",))
        return reset

    @field_validator("routes")
    @classmethod
    def _no_topic_on_two_routes(cls, routes: tuple[Route, ...]) -> tuple[Route, ...]:
        taken: dict[str, int] = {}
        for index, route in enumerate(routes):
            for place, topic in enumerate(route.topics):
                if taken.setdefault(topic, index) != index:
                    message = f"{topic} goes to routes[{taken[topic]}] already; name it once"
                    raise Refusal(message, at=(index, "topics", place), show=False)
        return routes

    @field_validator("routes")
    @classmethod
    def _routes_of_our_topics(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        source: Source | None = info.data.get("source")
        if source is None or not source.topics:
            return routes
        known = frozenset(source.topics)
        for index, route in enumerate(routes):
            for place, topic in enumerate(route.topics):
                if topic not in known:
                    message = f"{topic} is not among spec.source.topics"
                    raise Refusal(message, at=(index, "topics", place), show=False)
        return routes

    @field_validator("routes")
    @classmethod
    def _routes_apart_from_the_state(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        source, destination = info.data.get("source"), info.data.get("destination")
        if source is None or destination is None:
            return routes
        state: str = destination.state_prefix
        folder = state.split("/", maxsplit=1)[0]
        for index, route in enumerate(routes):
            prefix = route.destination.prefix if route.destination else None
            at = (index, "destination", "prefix")
            if prefix and (f"{prefix}/".startswith(f"{state}/") or f"{state}/".startswith(f"{prefix}/")):
                message = f'must lie apart from statePrefix "{state}", which belongs to the sink, got "{prefix}"'
                raise Refusal(message, at=at, show=False)
            if prefix == "" and folder in source.topics:
                message = f"must not be empty, since the topic {folder} would share its folder with statePrefix"
                raise Refusal(message, at=at, show=False)
        return routes

    @field_validator("routes")
    @classmethod
    def _formats_of_routes(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        """What a route leaves out it inherits, and that has to fit, too."""
        format: Format | None = info.data.get("format")
        for index, own in enumerate(route.format for route in routes):
            if format is None or own is None:
                continue
            kind, at = own.type or format.type, (index, "format")
            if compression := own.compression or format.compression:
                check_codec(kind, compression, (*at, "compression"))
            check_options(kind, over(Csv(), own.csv), (*at, "csv"))
            check_options(kind, over(Parquet(), own.parquet), (*at, "parquet"))
            meta = (own.columns and own.columns.meta) or format.columns.meta
            flatten = own.columns.flatten if own.columns and own.columns.flatten is not None else format.columns.flatten
            if flatten and meta != "Airbyte":
                raise Refusal(FLATTEN_OF_WHAT, at=(*at, "columns", "flatten"), show=False)
            columns = Columns(meta=meta, flatten=flatten)
            check_columns(kind, columns, (*at, "columns"))
            check_envelope(kind, columns, over(format.envelope, own.envelope), (*at, "envelope"))
        return routes

    @field_validator("format")
    @classmethod
    def _layout_of_the_format(cls, format: Format, info: ValidationInfo) -> Format:
        layout: Layout | None = info.data.get("layout")
        if layout is not None and format.type == "Bytes":
            check_single(layout.partition_by, layout.object_name, ("..", "layout"))
        return format

    @field_validator("layout")
    @classmethod
    def _layout_of_the_records(cls, layout: Layout, info: ValidationInfo) -> Layout:
        source: Source | None = info.data.get("source")
        check_folders(layout.partition_by, hive=layout.hive_style, at=())
        if source is not None:
            check_paths(layout.partition_by, source.key.format, source.value.format, ())
        return layout

    @field_validator("routes")
    @classmethod
    def _layouts_of_routes(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        source, layout, format = (info.data.get(name) for name in ("source", "layout", "format"))
        if source is None or layout is None or format is None:
            return routes
        for index, route in enumerate(routes):
            own, at = over(layout, route.layout), (index, "layout")
            check_folders(own.partition_by, hive=own.hive_style, at=at)
            check_paths(own.partition_by, source.key.format, source.value.format, at)
            if ((route.format and route.format.type) or format.type) == "Bytes":
                check_single(own.partition_by, own.object_name, at)
        return routes

    @field_validator("errors")
    @classmethod
    def _missing_values_have_a_place(cls, errors: Errors, info: ValidationInfo) -> Errors:
        layouts = [("", info.data.get("layout"))]
        layouts += [(f"routes[{index}].", route.layout) for index, route in enumerate(info.data.get("routes", ()))]
        for where, layout in layouts:
            if layout is not None and layout.on_missing_value == "DeadLetter" and errors.dead_letter is None:
                message = f"must be set, since {where}layout.onMissingValue is DeadLetter"
                raise Refusal(message, at=("deadLetter",), show=False)
        return errors


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class S3Sink:
    api_version: Literal["s3sink.dev/v1alpha1"]
    kind: Literal["S3Sink"]
    metadata: Metadata
    spec: Spec

    @property
    def id(self) -> str:
        """`<namespace>/<name>`, as state, logs and metrics call it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
