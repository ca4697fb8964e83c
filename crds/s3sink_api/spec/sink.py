"""The resource itself: metadata and the whole spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule
from s3sink_api.spec import cross_checks, immutable_fields, route_checks
from s3sink_api.spec.destination import Destination
from s3sink_api.spec.errors import Errors
from s3sink_api.spec.flush import Flush
from s3sink_api.spec.format import Format
from s3sink_api.spec.layout import Layout
from s3sink_api.spec.pydantic_config import CONFIG, LENIENT
from s3sink_api.spec.reset import Reset
from s3sink_api.spec.routes import Route, Sections
from s3sink_api.spec.schedule import Schedule
from s3sink_api.spec.source import Source
from s3sink_api.spec.spark import Spark
from s3sink_api.spec.text_types import Label, SinkName
from s3sink_api.spec.transform import Transform

DesiredState = Literal["Running", "Paused", "Stopped"]
RunMode = Literal["Continuous", "Once", "Scheduled"]
WriteMode = Literal["Append", "FullRefresh"]
Delivery = Literal["ExactlyOnce", "AtLeastOnce"]
NullValues = Literal["Write", "Skip", "Fail", "Separate"]
_CHECKS = {**cross_checks.CHECKS, "routes": route_checks.CHECKS}


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
class Spec:
    source: Source
    destination: Destination
    state: DesiredState = "Running"
    run: Annotated[RunMode, Field(validate_default=True)] = "Continuous"
    schedule: Annotated[Schedule | None, Field(validate_default=True)] = None
    mode: WriteMode = "Append"
    allow_empty: bool = False
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
        """Whether a run ends, once everything that was in Kafka at its start is in the bucket."""
        return self.run != "Continuous"

    def for_route(self, route: Route) -> Spec:
        """The spec as it is for the topics of a route."""
        sections = Sections(
            source=self.source,
            destination=self.destination,
            layout=self.layout,
            format=self.format,
            flush=self.flush,
            transform=self.transform,
        )
        return replace(self, **route.over(sections), routes=())

    @field_validator(*_CHECKS)
    @classmethod
    def _fits_other_sections(cls, value: Any, info: ValidationInfo) -> Any:
        for check in _CHECKS[str(info.field_name)]:
            check(value, cast(Sections, info.data))
        return value

    CEL: ClassVar[tuple[Rule, ...]] = cross_checks.CEL + route_checks.CEL + immutable_fields.CEL


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class S3Sink:
    api_version: Literal["s3sink.dev/v1alpha1"]
    kind: Literal["S3Sink"]
    metadata: Metadata
    spec: Spec

    @property
    def id(self) -> str:
        """`<namespace>/<name>`, as in state, logs and metrics."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
