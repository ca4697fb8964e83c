"""`spec.spark`: the pods the job runs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from pydantic.dataclasses import dataclass

from s3sink_api.spec.checked_types import ANY_OBJECT
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Cpu, Quantity, size_between
from s3sink_api.spec.regexes import LABEL
from s3sink_api.spec.spark_conf import ConfName, ConfValue
from s3sink_api.spec.text_types import matching

SparkMode = Literal["Local", "Cluster"]
Cores = Annotated[int, Field(ge=1, le=1024)]
# `memory: 2` is two bytes, and means a forgotten unit.
Memory = Annotated[Quantity, size_between("512Mi")]
Spill = Annotated[Quantity, size_between("64Mi")]
PodTemplate = Annotated[Mapping[str, JsonValue], ANY_OBJECT]
AnnotationName = Annotated[
    str,
    matching(
        rf"({LABEL}(\.{LABEL})*/)?[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?",
        "an annotation's name such as eks.amazonaws.com/role-arn",
        longest=253,
    ),
]
AnnotationValue = Annotated[str, Field(max_length=4096)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class DriverPod:
    cores: Cores = 1
    cpu_request: Cpu = "500m"
    memory: Memory = 2 * 2**30
    spill: Spill = 10 * 2**30
    pod_template: PodTemplate = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ExecutorPod:
    instances: Annotated[int, Field(ge=1, le=10_000)] = 2
    cores: Cores = 1
    cpu_request: Cpu = "250m"
    memory: Memory = 2 * 2**30
    spill: Spill = 10 * 2**30
    pod_template: PodTemplate = field(default_factory=dict)
    scale_to_zero: bool = True


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Spark:
    mode: SparkMode = "Local"
    image: Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*|", "an image reference", longest=512)] = ""
    driver: DriverPod = field(default_factory=DriverPod)
    executor: ExecutorPod = field(default_factory=ExecutorPod)
    conf: Annotated[Mapping[ConfName, ConfValue], Field(max_length=256)] = field(default_factory=dict)
    service_account_name: Annotated[
        str, matching(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?", "a ServiceAccount's name", longest=253)
    ] = ""
    service_account_annotations: Annotated[Mapping[AnnotationName, AnnotationValue], Field(max_length=64)] = field(
        default_factory=dict
    )
