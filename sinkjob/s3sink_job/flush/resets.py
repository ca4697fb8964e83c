"""`spec.reset`: every topic is read again, under a new generation. What was written stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from s3sink_api.spec import Reset
from s3sink_job.flush.kafka_metadata import Topic, TopicPartition
from s3sink_job.flush.starting_offsets import start_topics
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.transitions import next_generation, record_reset


def pending_reset(wanted: Reset | None, state: SinkState) -> Reset | None:
    """The manifest's reset, unless it was already done."""
    done = wanted is not None and any(reset.nonce == wanted.nonce for reset in state.resets)
    return None if done else wanted


def reset_topics(
    state: SinkState,
    nonce: str,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> SinkState:
    # The offsets of an end are those of the generation before.
    return record_reset(replace(restart_topics(state, topics, starts, now, epochs), end=None), nonce, now)


def restart_topics(
    state: SinkState,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> SinkState:
    """Gives every topic in the state its next generation.

    Topics that Kafka has now begin at `starts`. Any other begins at its earliest offset when it is found again.
    """
    for name, known in state.topics.items():
        topic = topics.get(name, Topic(known.id, ()))
        begin = {p: starts[name, p] for p in topic.partitions}
        state = next_generation(state, name, topic.id, begin, now, {p: (epochs or {}).get((name, p)) for p in begin})
    return start_topics(state, topics, starts, now, epochs)
