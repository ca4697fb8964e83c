"""Partitions without an answer of Kafka: the others do not wait for them, and they are not forgotten."""

from __future__ import annotations

from s3sink_job.kafka.unanswered_partitions import FIRST_WAIT, LONGEST_WAIT, UnansweredPartitions

A, B = ("t", 0), ("t", 1)


def test_a_partition_without_answers_is_requested_separately_with_backoff() -> None:
    now = [0.0]
    partitions = UnansweredPartitions(lambda: now[0])
    partitions.update([A, B], [A])
    waits = []
    for _ in range(8):
        began = now[0]
        while not partitions.split((A, B))[1]:
            now[0] += 0.5
        waits.append(now[0] - began)
        assert partitions.split((A, B)) == ((A,), (B,))
        partitions.update([A, B], [A])

    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT


def test_a_partition_that_answers_again_is_requested_with_the_others() -> None:
    now = [0.0]
    partitions = UnansweredPartitions(lambda: now[0])
    partitions.update([A, B], [A])
    now[0] = FIRST_WAIT
    partitions.update([A, B], [A, B])

    assert partitions.split((A, B)) == ((A, B), ())
