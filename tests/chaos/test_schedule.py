"""A seed always decides the same, with enough faults of every kind."""

from __future__ import annotations

from s3sink_api.spec import parse
from tests.chaos.choices import CODECS, LAYOUTS, choose
from tests.chaos.run import ANSWERS, KINDS, PROCESSES
from tests.chaos.schedule import Planned, plan, too_little

SEEDS = range(1, 200)


def all_planned(seed: int, seconds: float) -> list[Planned]:
    return [planned for track in (PROCESSES, ANSWERS) for planned in plan(seed, track, seconds)]


def test_a_seed_always_chooses_the_same_and_another_seed_differs() -> None:
    assert choose(7) == choose(7)
    assert all_planned(7, 600) == all_planned(7, 600)
    assert len({str(choose(seed)) for seed in SEEDS}) > 50
    assert all_planned(7, 600) != all_planned(8, 600)


def test_seven_seeds_have_every_format_and_many_have_every_choice() -> None:
    assert {choose(seed).format for seed in range(20, 27)} == set(CODECS)
    chosen = [choose(seed) for seed in SEEDS]
    assert {(c.format, c.codec) for c in chosen} == {(f, codec) for f, codecs in CODECS.items() for codec in codecs}
    assert {c.layout for c in chosen} == set(LAYOUTS)
    assert {c.isolation for c in chosen} == {"ReadCommitted", "ReadUncommitted"}
    assert {kind for c in chosen for kind in c.producers} == {"transactional", "idempotent", "plain"}


def test_every_manifest_of_a_seed_is_valid() -> None:
    spec = {"source": {"bootstrapServers": "kafka:9092", "topics": ["chaos"]}, "destination": {"bucket": "chaos"}}
    api = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "chaos"}}
    for seed in SEEDS:
        parse({**api, "spec": {**spec, **choose(seed).spec()}})


def test_ten_minutes_have_every_fault_twice_and_ninety_seconds_have_eight() -> None:
    for seed in SEEDS:
        kinds = [planned.kind for planned in all_planned(seed, 600)]
        assert min(kinds.count(kind) for kind in KINDS) >= 2, seed
        assert too_little(kinds, KINDS, 600) == [], seed
        assert too_little([planned.kind for planned in all_planned(seed, 90)], KINDS, 90) == [], seed


def test_faults_of_a_track_come_in_order_and_stop_before_the_end() -> None:
    for track in (PROCESSES, ANSWERS):
        times = [planned.at for planned in plan(3, track, 600)]
        assert times == sorted(times)
        assert times[-1] <= 600 - track.calm_end


def test_a_run_with_too_few_faults_or_kinds_fails() -> None:
    enough = list(KINDS) * 2
    assert too_little(enough, KINDS, 600) == []
    assert too_little(enough[1 : len(KINDS)], KINDS, 600) == [f"never happened: {KINDS[0]}"]
    assert too_little(enough[:19], KINDS[:19], 600) == ["19 faults in 600 s are too few: 20 have to happen"]
    assert too_little(["409"] * 30, KINDS, 90) == ["1 kinds of fault are too few: 8 have to happen"]
