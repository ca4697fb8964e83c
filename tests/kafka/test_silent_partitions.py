"""Partitions that Kafka does not answer for: the others do not wait for them, and they are not forgotten."""

from __future__ import annotations

from s3sink_job.kafka.silent import FIRST_WAIT, LONGEST_WAIT, Silent

A, B = ("t", 0), ("t", 1)


def test_a_silent_partition_is_asked_for_by_itself_and_less_often_the_longer_it_is_silent() -> None:
    now = [0.0]
    silent = Silent(lambda: now[0])
    silent.heard([A, B], [A])
    waits = []
    for _ in range(8):
        began = now[0]
        while not silent.split((A, B))[1]:
            now[0] += 0.5
        waits.append(now[0] - began)
        assert silent.split((A, B)) == ((A,), (B,))
        silent.heard([A, B], [A])

    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT


def test_a_partition_that_answers_again_is_one_of_all() -> None:
    now = [0.0]
    silent = Silent(lambda: now[0])
    silent.heard([A, B], [A])
    now[0] = FIRST_WAIT
    silent.heard([A, B], [A, B])

    assert silent.split((A, B)) == ((A, B), ())
