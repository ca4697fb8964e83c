"""`status` of a sink, as types. The driver reports a part of it, and the operator writes all of it.

Each field has the sentence and the limits that the definition shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic.alias_generators import to_camel

from s3sink_api import conditions

_EVERY_CONDITION = (*conditions.ALWAYS, conditions.OFFSETS_PUBLISHED, conditions.ON_SCHEDULE)
_ALL_BUT_LAST, _LAST = ", ".join(_EVERY_CONDITION[:-1]), _EVERY_CONDITION[-1]


def _field(description: str, *, required: bool = False, **schema: Any) -> Any:
    metadata = {"schema": {**schema, "description": description}}
    return field(metadata=metadata) if required else field(default=None, metadata=metadata)


def _text(description: str, longest: int = 1024, *, required: bool = False) -> Any:
    return _field(description, type="string", maxLength=longest, required=required)


def _choice(description: str, values: tuple[str, ...], *, required: bool = False) -> Any:
    return _field(description, type="string", enum=list(values), required=required)


def _time(description: str, *, required: bool = False) -> Any:
    return _field(description, type="string", format="date-time", required=required)


def _count(description: str, format: str = "int64") -> Any:
    return _field(description, type="integer", format=format)


def _number(description: str) -> Any:
    return _field(description, type="number")


def _list(description: str, most: int, **schema: Any) -> Any:
    return _field(description, type="array", maxItems=most, **schema)


def name_in_document(attribute: str) -> str:
    """`last_time` is `lastTime`; `from_` is `from`, a keyword of Python."""
    return to_camel(attribute.rstrip("_"))


@dataclass(frozen=True, kw_only=True)
class StatusPart:
    def to_document(self) -> dict[str, Any]:
        """As JSON, without the fields that are not set."""
        values = {name_in_document(field.name): getattr(self, field.name) for field in fields(self)}
        return {name: _written(value) for name, value in values.items() if value is not None}


def _written(value: Any) -> Any:
    if isinstance(value, StatusPart):
        return value.to_document()
    return [_written(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, kw_only=True)
class Condition(StatusPart):
    """One aspect of the sink's state."""

    type: str = _text(f"{_ALL_BUT_LAST} or {_LAST}.", 64, required=True)
    status: Literal["True", "False", "Unknown"] = _choice(
        "Whether it holds.", ("True", "False", "Unknown"), required=True
    )
    reason: str = _text("The reason, as one stable word.", 128, required=True)
    message: str = _text("The reason in a sentence, and what to do.", conditions.LONGEST_MESSAGE, required=True)
    last_transition_time: str = _time("When the status last changed.", required=True)
    observed_generation: int | None = _count("The generation of the spec that this condition is about.")


@dataclass(frozen=True, kw_only=True)
class FlushStatus(StatusPart):
    """The last flush, and the sums since the sink's first start."""

    last_time: str | None = _time("When the last flush was published.")
    last_reason: str | None = _text("The flush rules that caused it.")
    records: int | None = _count("Records in the last flush.")
    bytes: int | None = _count("Bytes in the last flush, as written.")
    objects: int | None = _count("Objects in the last flush.")
    duration_seconds: float | None = _number("How long the last flush took.")
    next_due: str | None = _time("When the next flush rule applies, if records wait.")
    total_records: int | None = _count("Records since the sink's first start.")
    total_objects: int | None = _count("Objects since the sink's first start.")
    total_filtered: int | None = _count("Records that the transform left out since the sink's first start.")


@dataclass(frozen=True, kw_only=True)
class DeadLetterStatus(StatusPart):
    """The last dead letter. Absent if there is none."""

    topic: str | None = _text("Its topic.", 249)
    partition: int | None = _count("Its partition.")
    offset: int | None = _count("Its offset.")
    reason: str | None = _text("Why it could not be written, in one word.")
    message: str | None = _text("Why it could not be written.", conditions.LONGEST_MESSAGE)
    time: str | None = _time("When it was committed.")


@dataclass(frozen=True, kw_only=True)
class RetryStatus(StatusPart):
    """Failures, and the number of bad records."""

    attempts: int | None = _count("Failures since the last flush.")
    last_error: str | None = _text("The last failure, as reason and message.", conditions.LONGEST_MESSAGE)
    last_time: str | None = _time("When the last failure happened.")
    next_time: str | None = _time("When the next attempt is.")
    skipped_records: int | None = _count("Bad records skipped since the first start.")
    dead_lettered_records: int | None = _count("Bad records written as dead letters since the first start.")
    last_dead_letter: DeadLetterStatus | None = None


@dataclass(frozen=True, kw_only=True)
class WorstLag(StatusPart):
    """The partition with the largest lag. Absent if no partition has any."""

    topic: str | None = _text("The topic.", 249)
    partition: int | None = _count("The partition.")
    records: int | None = _count("Its lag.")


@dataclass(frozen=True, kw_only=True)
class LagStatus(StatusPart):
    """How far the bucket is behind Kafka. Absent while the driver does not report."""

    records: int | None = _count("Offsets up to the last stable offset, over all partitions.")
    records_to_high_watermark: int | None = _count("The same up to the high watermark.")
    seconds: float | None = _number("The longest time that a partition has been behind.")
    worst: WorstLag | None = None


@dataclass(frozen=True, kw_only=True)
class PartitionOffsets(StatusPart):
    """One partition."""

    topic: str | None = _text("The topic.", 249)
    partition: int | None = _count("The partition.")
    committed: int | None = _count("The next offset to write.")
    end: int | None = _count("The last stable offset: the end of what can be read.")
    lag: int | None = _count("Offsets in between: the lag of the partition.")


@dataclass(frozen=True, kw_only=True)
class GapStatus(StatusPart):
    """One gap."""

    topic: str | None = _text("The topic.", 249)
    partition: int | None = _count("The partition.")
    from_: int | None = _count("The first offset that is missing.")
    to: int | None = _count("The offset after the last that is missing.")
    reason: str | None = _text("Why they are missing.")


@dataclass(frozen=True, kw_only=True)
class GapsStatus(StatusPart):
    """Offsets that were lost in Kafka before they were written."""

    count: int | None = _count("The number of gaps.")
    records: int | None = _count("Offsets in them.")
    recent: tuple[GapStatus, ...] | None = _list("The last 20 gaps.", 20)


@dataclass(frozen=True, kw_only=True)
class ResetStatus(StatusPart):
    """The last reset that was carried out."""

    nonce: str | None = _text("Its nonce.")
    time: str | None = _time("When every topic was started again.")


@dataclass(frozen=True, kw_only=True)
class RefreshStatus(StatusPart):
    """The last run of `mode: FullRefresh`."""

    run: str | None = _text("Its id: the uid of its Job.", 253)
    phase: str | None = _text("Writing, Publishing, Removing or Done.", 32)
    start_time: str | None = _time("When it began.")
    current_time: str | None = _time("When its objects replaced the former ones. Absent before.")
    records: int | None = _count("Records that it has written.")
    objects: int | None = _count("Objects that it has written.")
    replaced_records: int | None = _count("Records that it replaces.")
    replaced_objects: int | None = _count("Objects that it replaces.")
    replaced_bytes: int | None = _count("Bytes of the objects that it replaces.")
    unremoved_objects: int | None = _count("Replaced objects that the store refused to delete.")


@dataclass(frozen=True, kw_only=True)
class ExitStatus(StatusPart):
    """How the container ended last."""

    code: int | None = _count("Its exit code.")
    reason: str | None = _text("The reason that Kubernetes gives, such as OOMKilled.")
    message: str | None = _text("The last line it wrote.", conditions.LONGEST_MESSAGE)
    time: str | None = _time("When it ended.")


@dataclass(frozen=True, kw_only=True)
class DriverStatus(StatusPart):
    """The driver's pod."""

    pod: str | None = _text("Its name.", 253)
    restarts: int | None = _count("How often its container was restarted.")
    last_exit: ExitStatus | None = None
    epoch: int | None = _count(
        "The driver's epoch in the sink's state. A driver with a higher epoch fences off those with a lower one."
    )


@dataclass(frozen=True, kw_only=True)
class ExecutorsStatus(StatusPart):
    """The executor pods of Cluster mode, for `kubectl scale`."""

    replicas: int | None = _count("The executors that run.", "int32")
    selector: str | None = _text("The label selector of their pods.")


@dataclass(frozen=True, kw_only=True)
class Status(StatusPart):
    """What the operator and the driver observed last."""

    observed_generation: int | None = _count("The generation of the spec that the operator reconciled last.")
    phase: str | None = _choice(
        "What the sink is doing, in one word. The conditions give the details.", conditions.PHASES
    )
    conditions: tuple[Condition, ...] | None = _list(
        f"{_ALL_BUT_LAST} and {_LAST}.",
        16,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    flush: FlushStatus | None = None
    retry: RetryStatus | None = None
    lag: LagStatus | None = None
    offsets: tuple[PartitionOffsets, ...] | None = _list("The partitions with the largest lag, at most 50.", 50)
    gaps: GapsStatus | None = None
    reset: ResetStatus | None = None
    refresh: RefreshStatus | None = None
    driver: DriverStatus | None = None
    executors: ExecutorsStatus | None = None


@dataclass(frozen=True, kw_only=True)
class DriverReport(Status):
    """The answer of a driver on /status: its part of the status, and the time."""

    reported_at: str | None = None
