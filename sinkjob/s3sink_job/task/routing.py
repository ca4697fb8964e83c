"""The route of each topic: its encoding, destination and flush rules, or why it may not be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from s3sink_api.spec import Destination, Spec
from s3sink_job.base.errors import FinalError
from s3sink_job.base.time_zones import zone_of
from s3sink_job.decode.schema_languages import columns_of, kind_of
from s3sink_job.decode.settings import Decoding
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema
from s3sink_job.flush.aligned_times import FIELD as FLUSH_ZONE
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.rules import Rules, rules_of
from s3sink_job.flush.topic_changes import TopicChanges
from s3sink_job.layout.keys import may_clash
from s3sink_job.layout.time_patterns import clock_of
from s3sink_job.layout.topic_folders import folder_problems
from s3sink_job.task.encoding import Encoding, encoding_of
from s3sink_job.task.encoding_documents import encoding_from_doc
from s3sink_job.task.task_settings import TopicTarget


@dataclass(frozen=True)
class Encodings:
    """The encodings of one flush: a default, and those of topics that a route gives another one."""

    default: Encoding
    routed: Mapping[str, Encoding] = field(default_factory=dict)

    @property
    def stamp(self) -> int:
        return self.default.layout.stamp

    def of(self, topic: str) -> Encoding:
        return self.routed.get(topic, self.default)

    def at(self, stamp: int) -> Encodings:
        """For the flush of that time."""
        return Encodings(self.default.at(stamp), {name: e.at(stamp) for name, e in self.routed.items()})


def encodings_of(manifest: Manifest) -> Encodings:
    routed = {topic: encoding_from_doc(doc) for topic, doc in manifest.routed.items()}
    return Encodings(encoding_from_doc(manifest.encoding), routed)


class Routing:
    """Each topic is matched once: the routes that its name matches do not change."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.default = encoding_of(spec)
        self._specs = [spec.for_route(route) for route in spec.routes]
        self._encodings = [encoding_of(own) for own in self._specs]
        self._found: dict[str, tuple[int, ...]] = {}
        self._renames = any(encoding.layout.topics for encoding in (self.default, *self._encodings))

    @property
    def other_buckets(self) -> tuple[str, ...]:
        names = {own.destination.bucket for own in self._specs} - {self.spec.destination.bucket}
        return tuple(sorted(names))

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Of data and of dead letters."""
        letters = self.spec.errors.dead_letter
        prefix = letters.prefix if letters else None
        of_letters = () if prefix is None else (replace(self.spec.destination, prefix=prefix),)
        return (*(own.destination for own in (self.spec, *self._specs)), *of_letters)

    @property
    def shortest_interval(self) -> float:
        return min(own.flush.interval for own in (self.spec, *self._specs))

    @property
    def spread(self) -> bool:
        """Whether any topic's objects depend on what is in its records."""
        return any(encoding.grouped for encoding in (self.default, *self._encodings))

    def check(self) -> None:
        """Refuses what the spec cannot check: time zones, locales, schemas, layouts that could share a key."""
        every = [("spec", self.spec, self.default)]
        every += [
            (f"spec.routes[{number}]", own, encoding)
            for number, (own, encoding) in enumerate(zip(self._specs, self._encodings, strict=True))
        ]
        for name, own, encoding in every:
            _check_inline_schemas(name, encoding.decoding)
            encoding.layout.topics.check()
            for item in encoding.layout.items:
                if item.kind == "Time":
                    clock_of(item)
            zone_of(own.flush.timezone, FLUSH_ZONE)
        for (name, own, encoding), (beside, other, different) in combinations(every, 2):
            places = [(s.destination.prefix, e.layout) for s, e in ((own, encoding), (other, different))]
            if own.destination.bucket == other.destination.bucket and may_clash(*places):
                raise FinalError(
                    f"{beside}: its layout and that of {name} could give two objects the same key. Give it another "
                    "prefix; neither of the two may contain the other",
                    reason="RoutesClash",
                )

    def find_routes(self, matches: Callable[[str, str], bool], topics: Iterable[str]) -> None:
        """Matches topics that are new."""
        for topic in set(topics) - set(self._found):
            self._found[topic] = tuple(
                number
                for number, route in enumerate(self.spec.routes)
                if topic in route.topics or (route.topic_pattern and matches(route.topic_pattern, topic))
            )

    def spec_of(self, topic: str) -> Spec:
        found = self._found.get(topic)
        return self._specs[found[0]] if found else self.spec

    def encodings(self, topics: Iterable[str]) -> Encodings:
        routed = {topic: self._encodings[self._found[topic][0]] for topic in sorted(topics) if self._found.get(topic)}
        return Encodings(self.default, routed)

    def target(self, topic: str, encodings: Encodings) -> TopicTarget:
        own = self.spec_of(topic)
        return TopicTarget(encodings.of(topic), own.destination, own.flush.records, own.flush.bytes)

    def rules(self, drain_to: Mapping[TopicPartition, tuple[int, int]] | None) -> Rules:
        single = self.default.format.one_record_objects
        rules = rules_of(self.spec.flush, drain_to, single=single)
        by_topic = {
            topic: rules_of(
                self._specs[found[0]].flush, drain_to, single=self._encodings[found[0]].format.one_record_objects
            )
            for topic, found in self._found.items()
            if found
        }
        return replace(rules, by_topic=by_topic)

    def without_refused_topics(self, changes: TopicChanges) -> TopicChanges:
        """A topic with a problem is not written until a person decides."""
        by_topic = self.topic_problems({*changes.state.topics, *(topic for topic, _ in changes.seen)})
        problems = {at: by_topic[at[0]] for at in changes.seen if at[0] in by_topic}
        if not problems:
            return changes
        seen = {at: offsets for at, offsets in changes.seen.items() if at not in problems}
        return replace(changes, seen=seen, problems={**changes.problems, **problems})

    def topic_problems(self, topics: Iterable[str]) -> dict[str, Problem]:
        """The topics that routes or layouts refuse, and why. Each was matched before."""
        topics = sorted(topics)
        problems = {topic: problem for topic in topics if (problem := self._problem_of_routes(topic))}
        if self._renames:
            folders = [(topic, self.spec_of(topic)) for topic in topics]
            problems = folder_problems(folders, self.spec.errors.dead_letter) | problems
        return problems

    def _problem_of_routes(self, topic: str) -> Problem | None:
        found = self._found.get(topic, ())
        if len(found) > 1:
            names = " and ".join(f"spec.routes[{number}]" for number in found)
            return Problem("RoutesOverlap", f"topic {topic} matches {names}: change them so that only one matches")
        if not found and self.spec.routes and self.spec.source.on_unrouted_topic == "Fail":
            why = f"topic {topic} is in no route, and spec.source.onUnroutedTopic is Fail"
            return Problem("UnroutedTopic", f"{why}: add it to a route, or take it out of the source's topics")
        return None


def _check_inline_schemas(name: str, decoding: Decoding) -> None:
    """Of the spec or of a route."""
    for part, input_format, source in decoding.parts:
        if source.inline:
            try:
                columns_of(WriterSchema(kind_of(input_format), source.inline), input_format, source.options)
            except InvalidSchema as error:
                raise FinalError(f"{name}.source.{part}.schema is {error}", reason="InvalidSchema") from None
