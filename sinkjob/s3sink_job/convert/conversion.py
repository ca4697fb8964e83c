"""`convert`: from the bytes of a file to manifests that the parser accepts, and a report of every key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_api.spec import SpecError, parse
from s3sink_job.convert.bad_input import BadInput, Place
from s3sink_job.convert.configurations import Configuration, System, find_configurations
from s3sink_job.convert.documents import read_documents
from s3sink_job.convert.draft import PLACEHOLDER_SERVERS, PLACEHOLDER_TOPIC, Draft
from s3sink_job.convert.report import Report

PLACEHOLDER_BUCKET = "replace-me"
_REQUIRED = {
    "source.bootstrapServers": PLACEHOLDER_SERVERS,
    "destination.bucket": PLACEHOLDER_BUCKET,
    "source.topics": [PLACEHOLDER_TOPIC],
}


@dataclass(frozen=True)
class ConvertedSink:
    manifest: Mapping[str, Any]
    secrets: tuple[Mapping[str, Any], ...]
    report: Report


@dataclass(frozen=True)
class Conversion:
    sinks: tuple[ConvertedSink, ...]
    left_alone: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return all(sink.report.whole for sink in self.sinks)


def convert(content: bytes, name: str, bootstrap_servers: str = "") -> Conversion:
    """Raises `BadInput` with the place in the input."""
    found = find_configurations(read_documents(content, name), name)
    systems = {configuration.system for configuration in found.configurations}
    if len(systems) > 1 and not all(configuration.around for configuration in found.configurations):
        raise BadInput(
            Place(name), f"has documents of several systems: {', '.join(sorted(systems))}; convert one by one"
        )
    servers = bootstrap_servers or found.bootstrap_servers
    sinks = tuple(_converted(configuration, servers) for configuration in found.configurations)
    names = [sink.manifest["metadata"]["name"] for sink in sinks]
    for one in names:
        if names.count(one) > 1:
            raise BadInput(Place(name), f"two configurations would become the sink {one!r}; rename one of them")
    return Conversion(sinks, found.left_alone)


def _converted(configuration: Configuration, servers: str) -> ConvertedSink:
    title, run = _converter(configuration.system)
    draft = Draft(title, configuration.settings, configuration.name)
    run(draft)
    if configuration.state:
        draft.put("state", configuration.state)
    for key, text in configuration.around.items():
        draft.exact(key, text)
    if servers and not draft.value_at("source.bootstrapServers"):
        draft.put("source.bootstrapServers", servers)
    _make_valid(draft)
    for path, value in _REQUIRED.items():
        if draft.value_at(path) == value:
            draft.note(f"spec.{path} is a placeholder: replace it before the sink runs.")
    return ConvertedSink(draft.manifest(), tuple(draft.secret_manifests()), draft.report(configuration.written_as))


def _converter(system: System) -> tuple[str, Callable[[Draft], None]]:
    """Imported when used: KCQL's parser takes a while to load."""
    match system:
        case "lenses":
            from s3sink_job.convert import lenses

            return lenses.SYSTEM, lenses.convert_lenses
        case "confluent":
            from s3sink_job.convert import confluent

            return confluent.SYSTEM, confluent.convert_confluent
        case "aiven":
            from s3sink_job.convert import aiven

            return aiven.SYSTEM, aiven.convert_aiven
        case "redpanda":
            from s3sink_job.convert import redpanda

            return redpanda.SYSTEM, redpanda.convert_redpanda
        case "quix":
            from s3sink_job.convert import quix

            return quix.SYSTEM, quix.convert_quix
        case "airbyte":
            from s3sink_job.convert import airbyte

            return airbyte.SYSTEM, airbyte.convert_airbyte


def _make_valid(draft: Draft) -> None:
    """Takes out what the parser refuses, and reports its key as lost, until the manifest is valid."""
    for path, value in _REQUIRED.items():
        if path == "source.topics" and draft.value_at("source.topicPattern"):
            continue
        if not draft.value_at(path):
            draft.put(path, value)
    for _ in range(100):
        try:
            parse(draft.manifest())
        except SpecError as error:
            first = error.errors[0]
            _take_out(draft, first.path, first.message)
            continue
        _report_what_went_along(draft)
        return
    raise AssertionError(f"no valid manifest for {draft.system} {draft.given_name}")


def _take_out(draft: Draft, path: str, message: str) -> None:
    steps = _steps(path.removeprefix("spec."))
    key = next((draft.origins[at] for at in _around(path.removeprefix("spec.")) if at in draft.origins), None)
    why = _without_value(message)
    _remove(draft.spec, steps)
    for required, value in _REQUIRED.items():
        if not draft.value_at(required) and not (required == "source.topics" and draft.value_at("source.topicPattern")):
            draft.put(required, value)
    if key is None:
        draft.note(f"{path} was left out: {why}.")
    else:
        draft.withdraw(key, f"{path} refuses the value: {why}. Set it yourself")


def _report_what_went_along(draft: Draft) -> None:
    """Keys whose fields were in a section that was taken out."""
    for path, key in draft.carried.items():
        if draft.value_at(path) is None:
            draft.withdraw(key, f"spec.{path} was taken out together with a value beside it that was refused; set both")


def _around(path: str) -> list[str]:
    """The path, and the sections around it from the inside out."""
    found = [path]
    while match := re.match(r"(.*)(?:\.[^.\[]+|\[[^\]]*\])$", found[-1]):
        found.append(match[1])
    return found


def _steps(path: str) -> list[str | int]:
    found: list[str | int] = []
    for match in re.finditer(r"([^.\[\]]+)|\[([^\]]*)\]", path):
        if match[1] is not None:
            found.append(match[1])
        else:
            found.append(int(match[2]) if match[2].isdecimal() else match[2])
    return found


def _remove(section: Any, steps: list[str | int]) -> None:
    """Removes the field, or the nearest section around it that is there."""
    trail: list[tuple[Any, str | int]] = []
    for step in steps:
        there = (isinstance(section, dict) and step in section) or (
            isinstance(section, list) and isinstance(step, int) and step < len(section)
        )
        if not there:
            break
        trail.append((section, step))
        section = section[step]
    assert trail, "the parser names a field that is in the manifest"
    # A required field of a section that is an item or optional takes the section with it.
    holder, last = trail[-1]
    if len(trail) < len(steps) or (isinstance(holder, dict) and len(trail) > 1 and isinstance(trail[-2][1], int)):
        holder, last = trail[-2] if len(trail) == len(steps) and len(trail) > 1 else trail[-1]
    del holder[last]


def _without_value(message: str) -> str:
    """Messages of the parser end with the value, which may be a secret."""
    return re.sub(r", got .*$", "", message, flags=re.DOTALL).rstrip(".")
