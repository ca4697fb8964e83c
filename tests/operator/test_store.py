"""What the watches told, whatever order it came in."""

from __future__ import annotations

from typing import Any

from s3sink_operator.model import Key
from s3sink_operator.store import Store

ORDERS = Key("shop", "orders")


def document(name: str = "orders", version: int = 1, uid: str = "u", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version), "generation": 1}
    return {"metadata": metadata | {"managedFields": [{"manager": "kubectl"}]}, "spec": {}, **fields}


def child(version: int = 1, uid: str = "c", **fields: Any) -> dict[str, Any]:
    made = document("orders-s3sink", version, uid, **fields)
    made["metadata"]["labels"] = {"s3sink.dev/sink": "orders"}
    return made


def test_a_sink_is_seen_with_its_children_and_pods() -> None:
    store = Store()
    assert store.put("Deployment", child()) == ORDERS
    assert store.see(ORDERS) is None
    assert store.put("S3Sink", document()) == ORDERS
    pod = child(uid="p") | {"status": {"phase": "Running", "podIP": "10.0.0.1"}}
    store.put("Pod", pod)
    seen = store.see(ORDERS)
    assert seen is not None
    assert [(c.kind, c.name) for c in seen.children] == [("Deployment", "orders-s3sink")]
    assert [p.ip for p in seen.pods] == ["10.0.0.1"]
    assert "managedFields" not in seen.children[0].document["metadata"]
    assert store.sinks() == [ORDERS]


def test_old_news_and_the_echo_of_our_own_writes_are_no_news() -> None:
    store = Store()
    store.put("S3Sink", document(version=9, status={"phase": "Running"}))
    assert store.put("S3Sink", document(version=9)) is None
    assert store.put("S3Sink", document(version=8)) is None
    seen = store.see(ORDERS)
    assert seen is not None
    assert seen.resource.status == {"phase": "Running"}


def test_an_object_made_anew_counts_whatever_its_version_and_outlives_the_end_of_the_old_one() -> None:
    store = Store()
    store.put("S3Sink", document())
    store.put("Deployment", child(version=9, uid="old"))
    assert store.put("Deployment", child(version=12, uid="new")) == ORDERS
    assert store.drop("Deployment", child(version=11, uid="old")) is None
    seen = store.see(ORDERS)
    assert seen is not None
    assert [c.uid for c in seen.children] == ["new"]


def test_a_child_that_lost_its_label_is_still_known_to_be_ours() -> None:
    store = Store()
    store.put("S3Sink", document())
    store.put("ConfigMap", child())
    assert store.drop("ConfigMap", document("orders-s3sink", 2, "c")) == ORDERS
    assert not store.holds("ConfigMap", "shop", "orders-s3sink")


def test_what_a_list_lacks_is_gone_unless_it_is_younger_than_the_list() -> None:
    store = Store()
    store.put("S3Sink", document())
    store.put("S3Sink", document("payments", 30, "v"))
    store.put("ConfigMap", child(version=5))
    assert store.keep_only("ConfigMap", [], 4) == []
    assert store.keep_only("ConfigMap", [("shop", "orders-s3sink", "c")], 9) == []
    assert store.keep_only("ConfigMap", [("shop", "orders-s3sink", "another")], 9) == [ORDERS]
    assert store.keep_only("S3Sink", [("shop", "orders", "u")], 20) == []
    assert store.sinks() == [ORDERS, Key("shop", "payments")]


def test_nothing_is_left_of_a_sink_that_is_gone() -> None:
    store = Store()
    store.put("S3Sink", document())
    store.put("ConfigMap", child())
    store.lose("S3Sink", ORDERS, "orders")
    assert store.see(ORDERS) is None
    store.drop("ConfigMap", child())
    assert not store._held
    assert not store._where


def test_what_is_gone_does_not_come_back_with_an_answer_from_before() -> None:
    store = Store()
    store.put("S3Sink", document())
    store.put("Deployment", child(version=5))
    assert store.drop("Deployment", child(version=7)) == ORDERS
    assert store.put("Deployment", child(version=6), ORDERS) is None
    assert store.drop("S3Sink", document(version=9)) == ORDERS
    assert store.put("S3Sink", document(version=8)) is None
    assert store.see(ORDERS) is None
    assert not store._held
    # It only lost its label, and has it again.
    assert store.put("Deployment", child(version=10)) == ORDERS
