"""Restarting drivers and putting things right: a few at a time, and not for ever against somebody else."""

from __future__ import annotations

from typing import Any

from s3sink_operator.model import APPLIED, Key
from s3sink_operator.restraint import DISPUTED_FOR, MOST_APPLIED, ROLLED_WITHIN, Disputes, Rollout

SINKS = [Key("shop", f"orders-{number}") for number in range(300)]


def document(version: str = "a", name: str = "orders-s3sink") -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": name, "annotations": {APPLIED: version}}}


def test_a_few_drivers_are_restarted_at_a_time_and_the_next_when_one_is_well() -> None:
    clock = [0.0]
    rollout = Rollout(2, lambda: clock[0])
    assert [rollout.admits(key) for key in SINKS[:4]] == [True, True, False, False]
    assert rollout.admits(SINKS[0])
    rollout.over(SINKS[0])
    assert [rollout.admits(key) for key in SINKS[1:4]] == [True, True, False]
    clock[0] = ROLLED_WITHIN
    assert rollout.admits(SINKS[3])


def test_whoever_waits_asks_again_soon_but_many_do_not_ask_at_once() -> None:
    rollout = Rollout(1)
    for key in SINKS[:4]:
        rollout.admits(key)
    assert rollout.patience == 2
    for key in SINKS:
        rollout.admits(key)
    assert rollout.patience == len(SINKS[1:]) / 30
    for key in SINKS:
        rollout.over(key)
    assert rollout.patience == 2


def test_the_same_is_put_right_only_so_often_and_something_else_at_once() -> None:
    clock = [0.0]
    disputes = Disputes(lambda: clock[0])
    for _ in range(MOST_APPLIED):
        assert disputes.admits(SINKS[0], document())
        disputes.applied(SINKS[0], document())
    assert not disputes.admits(SINKS[0], document())
    assert disputes.admits(SINKS[0], document("b"))
    assert disputes.admits(SINKS[0], document(name="another"))
    assert disputes.admits(SINKS[1], document())
    clock[0] = DISPUTED_FOR
    assert disputes.admits(SINKS[0], document())
    disputes.applied(SINKS[0], document("b"))
    assert len(disputes._applied[SINKS[0]]) == 1
    disputes.over(SINKS[0])
    assert not disputes._applied
