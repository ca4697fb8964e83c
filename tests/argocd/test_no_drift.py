"""What is applied from git stays what git says, by Argo CD's own code: no ignoreDifferences is needed.

The definition fills in defaults, the operator writes a status, people pause a sink. Argo CD compares in several ways,
by the options of an Application.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.generate import KUSTOMIZE
from tests.api.documents import errors_of, everything_built, full, minimal, put
from tests.apiserver.manifests import by_hand
from tests.argocd.git import Git, each_way, leaves
from tools.argocd.program import ArgoCD, Way
from tools.cluster import BareCluster
from tools.cluster.client import Document, sinks

LONGEST_ANNOTATION = 262_144
LARGEST_EXACT = 2**53


def stays(git: Git, manifest: str | Document) -> None:
    assert git.differs(manifest) == {}
    before = git.live(manifest)["metadata"]
    after = git.sync(manifest)["metadata"]
    assert (after["generation"], after["resourceVersion"]) == (before["generation"], before["resourceVersion"])


@each_way
def test_a_manifest_with_every_field_stays_as_git_has_it(git: Git) -> None:
    document = put(full(), "metadata", {"name": "orders"})
    document = put(document, "spec.spark.driver.podTemplate", {"spec": {"nodeSelector": {"disk": "fast"}}})
    git.sync(document)
    git.api.patch(sinks(git.namespace, "orders", "status"), {"status": {"phase": "Running", "lag": {"records": 1}}})
    stays(git, document)


def spec_of(differences: dict[str, Any]) -> set[str]:
    return {path for path in differences if path.startswith("spec.")}


def values(one_each: bool) -> Iterator[Document]:
    """Manifests with the values that tests have for each field, as far as they are right."""
    seen = set()
    for path, document in by_hand():
        text = json.dumps(document)
        if path == "metadata.name" or (one_each and path in seen) or len(text) > LONGEST_ANNOTATION / 2:
            continue
        # Null in a list is refused by server-side apply, and Argo CD reads larger numbers as floating-point ones.
        large = any(isinstance(v, int | float) and v > LARGEST_EXACT for _, v in leaves(document))
        if "null" in text or large:
            continue
        with everything_built():
            if not errors_of(document):
                seen.add(path)
                yield document


@pytest.mark.slow
@pytest.mark.timeout(300)
@each_way
def test_no_value_of_any_field_is_rewritten(git: Git, way: Way) -> None:
    drifted = []
    for number, document in enumerate(values(one_each=way != Way())):
        document["metadata"]["name"] = f"sink-{number}"
        git.sync(document)
        if changed := git.differs(document):
            drifted.append((document["spec"], changed))
    assert drifted == []
    assert number > 25


ROUTES = [
    {"topics": ["payments"], "destination": {"prefix": "pay"}, "format": {"type": "Avro"}},
    {"topics": ["refunds"], "destination": {"prefix": "back"}},
]


@each_way
@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("spec.flush.interval", "7m", "10m"),
        ("spec.source.topics", ["orders"], ["orders", "payments"]),
        ("spec.routes", ROUTES, [ROUTES[0], {**ROUTES[1], "destination": {"prefix": "home"}}]),
        ("spec.routes", ROUTES, ROUTES[:1]),
        ("spec.state", "Running", "Paused"),
        ("metadata.labels.team", "data", "lake"),
    ],
)
def test_a_change_in_git_is_seen_and_synced(git: Git, path: str, before: Any, after: Any) -> None:
    git.sync(put(minimal(), path, before))
    changed = put(minimal(), path, after)
    assert any(found.startswith(path) for found in git.differs(changed))
    git.sync(changed)
    stays(git, changed)


@each_way
@pytest.mark.parametrize(("field", "value", "default"), [("bytes", "5Mi", None), ("interval", "7m", "1h")])
def test_a_field_that_git_drops_is_seen_as_far_as_the_options_go(
    git: Git, way: Way, field: str, value: str, default: str | None
) -> None:
    git.sync(put(minimal(), f"spec.flush.{field}", value))
    dropped = put(minimal(), "spec.flush", {})
    # The server asked as the manager of an apply that never was, or its defaults taken for those of a webhook.
    unseen = way.serverDiff and (not way.server or (default is not None and not way.webhooks))
    assert (f"spec.flush.{field}" in git.differs(dropped)) != unseen
    assert git.sync(dropped)["spec"]["flush"].get(field) == default


@pytest.mark.parametrize("way", [Way()], ids=["by default"])
@pytest.mark.parametrize("field", ["bytes", "interval"])
def test_null_in_git_is_as_good_as_nothing_by_default(git: Git, field: str) -> None:
    document = put(minimal(), f"spec.flush.{field}", None)
    git.sync(document)
    stays(git, document)


@each_way
def test_a_change_by_hand_of_what_git_says_is_seen(git: Git) -> None:
    document = put(minimal(), "spec.flush.interval", "5m")
    git.sync(document)
    git.api.patch(sinks(git.namespace, "orders"), {"spec": {"flush": {"interval": "1h"}}})
    assert spec_of(git.differs(document)) == {"spec.flush.interval"}


@each_way
def test_a_pause_by_action_lasts_where_git_does_not_say_otherwise(git: Git) -> None:
    git.sync(minimal())
    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(minimal()), "pause"))
    assert git.differs(minimal()) == {}
    assert git.sync(put(minimal(), "spec.flush.interval", "5m"))["spec"]["state"] == "Paused"


@each_way
def test_a_pause_by_action_is_a_difference_where_git_says_otherwise(git: Git) -> None:
    document = put(minimal(), "spec.state", "Running")
    git.sync(document)
    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(document), "pause"))
    assert spec_of(git.differs(document)) == {"spec.state"}
    assert git.sync(document)["spec"]["state"] == "Running"


@each_way
def test_a_restart_by_action_is_no_difference(git: Git) -> None:
    git.sync(minimal())
    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(minimal()), "restart"))
    assert "s3sink.dev/restarted-at" in git.live(minimal())["metadata"]["annotations"]
    assert git.differs(minimal()) == {}


@each_way
def test_a_reset_by_action_lasts_where_git_has_none(git: Git) -> None:
    """It begins where the definition says, and the next one does where the last one did."""
    git.sync(minimal())
    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(minimal()), "reset"))
    asked = git.live(minimal())["spec"]["reset"]
    assert asked["to"] == {"position": "Earliest"}
    assert git.differs(minimal()) == {}
    assert git.sync(put(minimal(), "spec.flush.interval", "5m"))["spec"]["reset"] == asked


@each_way
def test_a_reset_by_action_is_put_back_to_the_nonce_that_git_has(git: Git) -> None:
    """Which resets nothing: the driver has carried that one out before (tests/protocol)."""
    wanted = {"nonce": "2026-11-01", "to": {"position": "Latest"}}
    document = put(minimal(), "spec.reset", wanted)
    git.sync(document)
    patch = git.argocd.act(git.live(document), "reset")
    assert set(patch["spec"]["reset"]) == {"nonce"}
    git.api.patch(sinks(git.namespace, "orders"), patch)
    assert spec_of(git.differs(document)) == {"spec.reset.nonce"}
    assert git.sync(document)["spec"]["reset"] == wanted


@each_way
def test_the_operator_and_its_definition_stay_as_git_has_them(
    argocd: ArgoCD, cluster: BareCluster, granted: BareCluster, way: Way
) -> None:
    text = cluster.kubectl("kustomize", str(KUSTOMIZE / "base"))
    for desired in argocd.read(text, ""):
        argocd.apply(desired, server=way.server)
        found = cluster.kubectl("get", "-f", "-", "-o", "json", "--show-managed-fields", stdin=json.dumps(desired))
        (live,) = json.loads(found)["items"]
        compared = argocd.diff(live, desired, way)
        assert not compared.modified, desired["kind"]
