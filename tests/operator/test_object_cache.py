"""The cache is right in whatever order events and answers arrive."""

from __future__ import annotations

from typing import Any

from s3sink_operator.observe.api_client import ListedObject
from s3sink_operator.observe.object_cache import ObjectCache
from s3sink_operator.values.objects import SinkKey

ORDERS = SinkKey("shop", "orders")


def document(name: str = "orders", version: int = 1, uid: str = "u", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version), "generation": 1}
    return {"metadata": metadata | {"managedFields": [{"manager": "kubectl"}]}, "spec": {}, **fields}


def child(version: int = 1, uid: str = "c", **fields: Any) -> dict[str, Any]:
    made = document("orders-s3sink", version, uid, **fields)
    made["metadata"]["labels"] = {"s3sink.dev/sink": "orders"}
    return made


def test_a_sink_is_read_with_its_children_and_pods() -> None:
    cache = ObjectCache()
    assert cache.update("Deployment", child()) == ORDERS
    assert cache.read(ORDERS) is None
    assert cache.update("S3Sink", document()) == ORDERS
    pod = child(uid="p") | {"status": {"phase": "Running", "podIP": "10.0.0.1"}}
    cache.update("Pod", pod)
    seen = cache.read(ORDERS)
    assert seen is not None
    assert [(c.kind, c.name) for c in seen.children] == [("Deployment", "orders-s3sink")]
    assert [p.ip for p in seen.pods] == ["10.0.0.1"]
    assert "managedFields" not in seen.children[0].document["metadata"]
    assert cache.sinks() == [ORDERS]


def test_old_versions_and_echoes_of_our_own_writes_are_ignored() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document(version=9, status={"phase": "Running"}))
    assert cache.update("S3Sink", document(version=9)) is None
    assert cache.update("S3Sink", document(version=8)) is None
    seen = cache.read(ORDERS)
    assert seen is not None
    assert seen.resource.status == {"phase": "Running"}


def test_a_recreated_object_survives_the_late_deletion_of_the_former_one() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document())
    cache.update("Deployment", child(version=9, uid="old"))
    assert cache.update("Deployment", child(version=12, uid="new")) == ORDERS
    assert cache.delete("Deployment", child(version=11, uid="old")) is None
    seen = cache.read(ORDERS)
    assert seen is not None
    assert [c.uid for c in seen.children] == ["new"]


def test_a_child_that_lost_its_label_still_belongs_to_its_sink() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document())
    cache.update("ConfigMap", child())
    assert cache.delete("ConfigMap", document("orders-s3sink", 2, "c")) == ORDERS
    assert not cache.contains("ConfigMap", "shop", "orders-s3sink")


def test_objects_missing_in_a_list_are_removed_unless_they_are_newer() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document())
    cache.update("S3Sink", document("payments", 30, "v"))
    cache.update("ConfigMap", child(version=5))
    assert cache.keep_only("ConfigMap", [], 4) == []
    assert cache.keep_only("ConfigMap", [ListedObject("shop", "orders-s3sink", "c")], 9) == []
    assert cache.keep_only("ConfigMap", [ListedObject("shop", "orders-s3sink", "another")], 9) == [ORDERS]
    assert cache.keep_only("S3Sink", [ListedObject("shop", "orders", "u")], 20) == []
    assert cache.sinks() == [ORDERS, SinkKey("shop", "payments")]


def test_a_deleted_sink_leaves_nothing_in_the_cache() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document())
    cache.update("ConfigMap", child())
    cache.forget("S3Sink", ORDERS, "orders")
    assert cache.read(ORDERS) is None
    cache.delete("ConfigMap", child())
    assert not cache._entries
    assert not cache._sinks


def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    cache = ObjectCache()
    cache.update("S3Sink", document())
    cache.update("Deployment", child(version=5))
    assert cache.delete("Deployment", child(version=7)) == ORDERS
    assert cache.update("Deployment", child(version=6), ORDERS) is None
    assert cache.delete("S3Sink", document(version=9)) == ORDERS
    assert cache.update("S3Sink", document(version=8)) is None
    assert cache.read(ORDERS) is None
    assert not cache._entries
    # It had only lost its label.
    assert cache.update("Deployment", child(version=10)) == ORDERS
