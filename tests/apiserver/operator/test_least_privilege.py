"""Each install does all it should with the rights it asks for, and asks for none that it does not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from e2e.chain.sinks import until
from e2e.cluster import BareCluster
from e2e.cluster.client import Document
from e2e.standin import Install, Operator, StandInNode
from e2e.standin.audit import DENIED, Asked, Right, asked, granted, used
from e2e.standin.operator import FOLDER
from tests.apiserver.operator.conftest import QUICK
from tests.apiserver.operator.places import CHILDREN, Place, sink

NAMESPACED = "operator-namespaced.yaml"
TO_GIVE_AWAY = {Right("", "pods", verb) for verb in ("get", "create", "delete", "deletecollection")}
"""Held only because nobody can give a right that they do not have: drivers in Cluster mode get these."""
DRIFT: dict[str, Document] = {
    "configmap": {"data": {"sink.yaml": "nonsense"}},
    "serviceaccount": {"automountServiceAccountToken": True},
    "role": {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]},
    "rolebinding": {"subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]},
    "deployment": {"spec": {"replicas": 3}},
    "cronjob": {"spec": {"concurrencyPolicy": "Allow"}},
}


@dataclass(frozen=True)
class Installed:
    install: Install
    operator: Operator
    place: Place
    elsewhere: Place
    """Where a namespaced one has no business."""
    before: int
    """Requests of its account from before it was started."""

    @property
    def namespaced(self) -> bool:
        return any(document["kind"] == "Role" for document in self.install.documents)

    def requests(self) -> list[Asked]:
        return asked(self.place.cluster, self.operator.user)[self.before :]


@pytest.fixture(scope="module", params=["operator.yaml", NAMESPACED])
def installed(
    request: pytest.FixtureRequest,
    cluster: BareCluster,
    node: StandInNode,
    new_place: Callable[[], Place],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    place, elsewhere = new_place(), new_place()
    # Two accounts, so that neither has the other's rights.
    names = {"shop": place.name, "s3sink-system": new_place().name} if request.param == NAMESPACED else {}
    install = Install.read(FOLDER / request.param, names)
    install.grant(cluster)
    operator = Operator(
        *(cluster, tmp_path_factory.mktemp("operator"), *QUICK, "--driver-port", str(node.port)),
        system=install.system,
        env=install.settings,
    )
    before = len(asked(cluster, operator.user))
    operator.start()
    yield Installed(install, operator, place, elsewhere, before)
    operator.stop()


@pytest.fixture(scope="module")
def worked(installed: Installed) -> Installed:
    """After it had to do all it can."""
    place = installed.place
    installed.elsewhere.apply(sink())
    place.apply(sink(), sink("wide", spark={"mode": "Cluster"}), sink("once", run="Once"))
    place.apply(sink("hourly", run="Scheduled", schedule="0 * * * *"), sink("wrong", transform={"where": "a > 0"}))
    for name in ("orders", "wide", "once"):
        place.until_served(name)
    place.until_reason("hourly", "Ready", "WaitingForSchedule")
    place.until_reason("wrong", "Accepted", "InvalidSpec")
    _drift(place)
    _change_of_mind(installed)
    return installed


def _drift(place: Place) -> None:
    """Somebody changes every child, and then deletes it."""
    for kind, change in DRIFT.items():
        _is_put_right(place, kind, "hourly-s3sink" if kind == "cronjob" else "wide-s3sink", change)
    for kind in CHILDREN:
        _is_made_again(place, kind, {"cronjob": "hourly-s3sink", "job": "once-s3sink"}.get(kind, "wide-s3sink"))


def _is_put_right(place: Place, kind: str, name: str, change: Document) -> None:
    before, (field,) = place.get(kind, name) or {}, change
    place.change(kind, name, change)
    until(f"the {kind} to be put right", lambda: (place.get(kind, name) or {}).get(field) == before[field], 5, 0.02)


def _is_made_again(place: Place, kind: str, name: str) -> None:
    def uid() -> str:
        found = place.get(kind, name)
        return found["metadata"]["uid"] if found else ""

    before = uid()
    place.delete(kind, name)
    until(f"the {kind} to be made again", lambda: uid() not in {"", before}, 10, 0.05)


def _change_of_mind(installed: Installed) -> None:
    """Every way of running turns into another one."""
    place = installed.place
    place.patch("wide", {"spark": {"mode": "Local"}})
    until("the rights to go", lambda: not place.get("role", "wide-s3sink"))
    until("the executors' account to go", lambda: not place.get("serviceaccount", "wide-s3sink-executor"))
    place.patch("hourly", {"run": "Once", "schedule": None})
    until("a Job in place of the CronJob", lambda: place.get("job", "hourly-s3sink"))
    place.patch("once", {"run": "Continuous"})
    until("a Deployment in place of the Job", lambda: place.get("deployment", "once-s3sink"))
    place.patch("orders", {"state": "Stopped"})
    place.until_reason("orders", "Ready", "Stopped")
    until("the Deployment to go", lambda: not place.get("deployment", "orders-s3sink"))


def test_all_of_it_works_and_nothing_was_forbidden(worked: Installed) -> None:
    assert "Stopped" in worked.place.events("orders")
    assert "SpecRefused" in worked.place.events("wrong")
    # Namespaces of other tests, which are going, refuse what everybody asks of them.
    ours = {"", worked.place.name, worked.elsewhere.name}
    assert [request for request in worked.requests() if request.code in DENIED and request.namespace in ours] == []
    assert "forbidden" not in worked.operator.log
    assert "Traceback" not in worked.operator.log


def test_no_right_is_superfluous(worked: Installed) -> None:
    asks_for = granted(worked.install.rules)
    assert asks_for - used(worked.requests()) == TO_GIVE_AWAY


def test_no_right_on_secrets_and_no_right_on_everything(installed: Installed) -> None:
    for right in granted(installed.install.rules):
        assert right.resource != "secrets"
        assert "*" not in {right.group, right.resource, right.verb}


def test_a_namespaced_operator_stays_in_its_namespaces(worked: Installed) -> None:
    seen = {request.namespace for request in worked.requests() if request.right.resource != "namespaces"}
    if not worked.namespaced:
        assert "" in seen
        worked.elsewhere.until_served()
        return
    assert seen == {worked.place.name}
    assert worked.elsewhere.status("orders") == {}
    assert worked.elsewhere.left_behind() == ["s3sink/orders"]
