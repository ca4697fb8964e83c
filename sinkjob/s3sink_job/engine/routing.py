"""Which route a topic takes, and what becomes of its records there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from s3sink_job.encoding import Encoding, encoding_from_doc, encoding_of
from s3sink_job.engine.write import Target
from s3sink_job.errors import FinalError
from s3sink_job.flush.clocks import clock_of
from s3sink_job.flush.contact import Contact
from s3sink_job.flush.keys import may_clash
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.plan import Rules, TopicPartition, rules_of
from s3sink_job.flush.problem import Problem
from s3sink_job.spec import Destination, Spec, spec_for


@dataclass(frozen=True)
class Encodings:
    """How the records of one flush become bytes: those of a topic by itself where a route says so."""

    default: Encoding
    routed: Mapping[str, Encoding] = field(default_factory=dict)

    @property
    def stamp(self) -> int:
        return self.default.layout.stamp

    def of(self, topic: str) -> Encoding:
        return self.routed.get(topic, self.default)

    def at(self, stamp: int) -> Encodings:
        """For the flush of that time."""
        return Encodings(_at(self.default, stamp), {name: _at(e, stamp) for name, e in self.routed.items()})


def encodings_of(manifest: Manifest) -> Encodings:
    routed = {topic: encoding_from_doc(doc) for topic, doc in manifest.routed.items()}
    return Encodings(encoding_from_doc(manifest.encoding), routed)


def _at(encoding: Encoding, stamp: int) -> Encoding:
    return replace(encoding, layout=replace(encoding.layout, stamp=stamp))


class Routing:
    """Topics are asked for once: what a name matches does not change."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.default = encoding_of(spec)
        self._specs = [spec_for(spec, route) for route in spec.routes]
        self._encodings = [encoding_of(own) for own in self._specs]
        self._found: dict[str, tuple[int, ...]] = {}

    @property
    def other_buckets(self) -> tuple[str, ...]:
        names = {own.destination.bucket for own in self._specs} - {self.spec.destination.bucket}
        return tuple(sorted(names))

    @property
    def destinations(self) -> tuple[Destination, ...]:
        return tuple(own.destination for own in (self.spec, *self._specs))

    @property
    def shortest_interval(self) -> float:
        return min(own.flush.interval for own in (self.spec, *self._specs))

    @property
    def spread(self) -> bool:
        """Whether any topic's objects depend on what is in its records."""
        return any(encoding.grouped for encoding in (self.default, *self._encodings))

    def check(self) -> None:
        """Refuses what only the job can judge: time zones, locales, and layouts that could give two objects one key."""
        for encoding in (self.default, *self._encodings):
            for item in encoding.layout.items:
                if item.kind == "Time":
                    clock_of(item)
        every = [("spec", self.spec, self.default)]
        every += [
            (f"spec.routes[{number}]", own, encoding)
            for number, (own, encoding) in enumerate(zip(self._specs, self._encodings, strict=True))
        ]
        for (name, own, encoding), (beside, other, different) in combinations(every, 2):
            places = [(s.destination.prefix, e.layout) for s, e in ((own, encoding), (other, different))]
            if own.destination.bucket == other.destination.bucket and may_clash(*places):
                raise FinalError(
                    f"{beside}: its layout and that of {name} could give two objects one key; give it a prefix that "
                    "neither holds the other nor lies within it",
                    reason="RoutesClash",
                )

    def look(self, matches: Callable[[str, str], bool], topics: Iterable[str]) -> None:
        """Finds the routes of topics that were not seen before."""
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

    def target(self, topic: str, encodings: Encodings) -> Target:
        own = self.spec_of(topic)
        return Target(encodings.of(topic), own.destination, own.flush.records, own.flush.bytes)

    def rules(self, drain_to: Mapping[TopicPartition, tuple[int, int]] | None) -> Rules:
        rules = rules_of(self.spec.flush, drain_to, single=self.spec.format.type == "Bytes")
        by_topic = {
            topic: rules_of(own.flush, drain_to, single=own.format.type == "Bytes")
            for topic, found in self._found.items()
            for own in (self._specs[number] for number in found[:1])
        }
        return replace(rules, by_topic=by_topic)

    def without_overlaps(self, contact: Contact) -> Contact:
        """A topic that two routes want goes nowhere until a person decides."""
        problems = {at: problem for at in contact.seen if (problem := self._overlap(at[0]))}
        if not problems:
            return contact
        seen = {at: offsets for at, offsets in contact.seen.items() if at not in problems}
        return replace(contact, seen=seen, problems={**contact.problems, **problems})

    def _overlap(self, topic: str) -> Problem | None:
        found = self._found.get(topic, ())
        if len(found) < 2:
            return None
        names = " and ".join(f"spec.routes[{number}]" for number in found)
        return Problem("RoutesOverlap", f"topic {topic} matches {names}: change their topicPattern so that one does")
