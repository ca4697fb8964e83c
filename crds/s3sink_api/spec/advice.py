"""What a valid spec probably does not mean: shown to people, never refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from s3sink_api.spec.date_patterns import levels_of
from s3sink_api.spec.field_errors import FieldError
from s3sink_api.spec.partition_items import ByTime, ByTopic
from s3sink_api.spec.sink import Spec


def warnings_of(spec: Spec) -> tuple[FieldError, ...]:
    layouts: list[tuple[str, Any]] = [("spec.layout", spec.layout)]
    layouts += [(f"spec.routes[{index}].layout", route.layout) for index, route in enumerate(spec.routes)]
    found = [found for path, layout in layouts if layout is not None for found in _years_of_weeks(path, layout)]
    return (*found, *_without_effect(spec))


def _without_effect(spec: Spec) -> Iterator[FieldError]:
    if spec.source.on_unrouted_topic == "Fail" and not spec.routes:
        yield FieldError("spec.source.onUnroutedTopic", "has no effect, since there are no routes")
    layout = spec.layout
    in_folders = any(isinstance(item, ByTopic) for item in layout.partition_by)
    if (layout.topic_names or layout.topic_replacement) and not in_folders and not spec.routes:
        field = "topicNames" if layout.topic_names else "topicReplacement"
        yield FieldError(f"spec.layout.{field}", "has no effect, since partitionBy has no Topic")


def _years_of_weeks(path: str, layout: Any) -> Iterator[FieldError]:
    """Joda's YYYY is the year; Java's is the year of the week, which makes sense beside a week only."""
    for index, item in enumerate(layout.partition_by or ()):
        if not isinstance(item, ByTime):
            continue
        fields = [token.text for level in levels_of(item.format) for token in level if token.field]
        years = next((field for field in fields if field[0] == "Y"), "")
        if years and not any(field[0] == "w" for field in fields):
            yield FieldError(
                f"{path}.partitionBy[{index}].format",
                f"{years} is the year of the week, so that days around New Year get another year; in Confluent's"
                f" patterns, which are Joda's, it is the year: write {years.lower()}",
            )
