"""Topics whose folder is not theirs alone: it is that of another topic, of the state or of dead letters."""

from __future__ import annotations

from collections.abc import Iterable

from s3sink_api.spec import DeadLetter, Destination, Spec, may_share_folders
from s3sink_job.flush.problem import Problem
from s3sink_job.layout.topic_names import topic_names_of


def folder_problems(topics: Iterable[tuple[str, Spec]], letters: DeadLetter | None) -> dict[str, Problem]:
    """By topic. Both of two topics with one folder have the problem: which of them is right only a person knows."""
    problems: dict[str, Problem] = {}
    by_name: dict[str, list[tuple[str, Destination]]] = {}
    for topic, spec in topics:
        names = topic_names_of(spec.layout)
        folder = names.folder_of(topic)
        if fault := names.fault_of(topic) or _taken(folder, topic, spec, letters):
            problems[topic] = Problem(
                "TopicFolderRefused", f"{fault}: change spec.layout.topicNames or topicReplacement"
            )
        for other, destination in by_name.setdefault(folder, []):
            if may_share_folders(spec.destination, destination):
                why = f"topics {other} and {topic} would share the folder {folder!r}"
                what = "give each its own in spec.layout.topicNames or topicReplacement"
                problem = Problem("TopicsShareFolder", f"{why}: {what}")
                problems |= {one: problems.get(one, problem) for one in (other, topic)}
        by_name[folder].append((topic, spec.destination))
    return problems


def _taken(folder: str, topic: str, spec: Spec, letters: DeadLetter | None) -> str:
    destination = spec.destination
    if destination.prefix:
        return ""
    if folder == destination.state_prefix.split("/")[0]:
        return f"topic {topic} would have the folder {folder!r}, which holds the state"
    if letters is not None and letters.prefix and folder == letters.prefix.split("/")[0]:
        return f"topic {topic} would have the folder {folder!r}, which holds dead letters"
    return ""
