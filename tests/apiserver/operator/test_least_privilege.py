"""Each install works with its rights, and has none that it does not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.apiserver.operator.conftest import QUICK
from tests.apiserver.operator.namespaces import CHILDREN, SinkNamespace, sink
from tools.cluster import BareCluster
from tools.cluster.client import Document
from tools.operator_harness import FakeNode, Install, Operator
from tools.operator_harness.audit_log import DENIED, Asked, Right, asked, granted, used
from tools.operator_harness.operator_process import FOLDER
from tools.polling import until

NAMESPACED = "operator-namespaced.yaml"
TO_GIVE_AWAY = {Right("", "pods", verb) for verb in ("get", "create", "delete", "deletecollection")}
"""The operator gives them to drivers in Cluster mode, and Kubernetes lets nobody give a right they do not have."""
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
    shop: SinkNamespace
    elsewhere: SinkNamespace
    """A namespace that a namespaced operator must not touch."""
    before: int
    """Earlier requests of its account."""

    @property
    def namespaced(self) -> bool:
        return any(document["kind"] == "Role" for document in self.install.documents)

    def requests(self) -> list[Asked]:
        return asked(self.shop.cluster, self.operator.user)[self.before :]


@pytest.fixture(scope="module", params=["operator.yaml", NAMESPACED])
def installed(
    request: pytest.FixtureRequest,
    cluster: BareCluster,
    node: FakeNode,
    new_namespace: Callable[[], SinkNamespace],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    shop, elsewhere = new_namespace(), new_namespace()
    # Two accounts, so that neither has the other's rights.
    names = {"shop": shop.name, "s3sink-system": new_namespace().name} if request.param == NAMESPACED else {}
    install = Install.read(FOLDER / request.param, names)
    install.grant(cluster)
    operator = Operator(
        *(cluster, tmp_path_factory.mktemp("operator"), *QUICK, "--driver-port", str(node.port)),
        system=install.system,
        env=install.settings,
    )
    before = len(asked(cluster, operator.user))
    operator.start()
    yield Installed(install, operator, shop, elsewhere, before)
    operator.stop()


@pytest.fixture(scope="module")
def worked(installed: Installed) -> Installed:
    """After it had to do everything it can do."""
    shop = installed.shop
    installed.elsewhere.apply(sink())
    shop.apply(sink(), sink("wide", spark={"mode": "Cluster"}), sink("once", run="Once"))
    shop.apply(sink("hourly", run="Scheduled", schedule="0 * * * *"), sink("wrong", transform={"where": "now() > a"}))
    for name in ("orders", "wide", "once"):
        shop.until_served(name)
    shop.until_reason("hourly", "Ready", "WaitingForSchedule")
    shop.until_reason("wrong", "Accepted", "InvalidSpec")
    _drift(shop)
    _change_of_mind(installed)
    return installed


def _drift(shop: SinkNamespace) -> None:
    """Somebody changes every child, and then deletes it."""
    for kind, change in DRIFT.items():
        _is_put_right(shop, kind, "hourly-s3sink" if kind == "cronjob" else "wide-s3sink", change)
    for kind in CHILDREN:
        _is_made_again(shop, kind, {"cronjob": "hourly-s3sink", "job": "once-s3sink"}.get(kind, "wide-s3sink"))


def _is_put_right(shop: SinkNamespace, kind: str, name: str, change: Document) -> None:
    before, (field,) = shop.get(kind, name) or {}, change
    shop.change(kind, name, change)
    until(f"the {kind} to be put right", lambda: (shop.get(kind, name) or {}).get(field) == before[field], 5, 0.02)


def _is_made_again(shop: SinkNamespace, kind: str, name: str) -> None:
    def uid() -> str:
        found = shop.get(kind, name)
        return found["metadata"]["uid"] if found else ""

    before = uid()
    shop.delete(kind, name)
    until(f"the {kind} to be made again", lambda: uid() not in {"", before}, 10, 0.05)


def _change_of_mind(installed: Installed) -> None:
    """Every way of running turns into another one."""
    shop = installed.shop
    shop.patch("wide", {"spark": {"mode": "Local"}})
    until("the rights to go", lambda: not shop.get("role", "wide-s3sink"))
    until("the executors' account to go", lambda: not shop.get("serviceaccount", "wide-s3sink-executor"))
    shop.patch("hourly", {"run": "Once", "schedule": None})
    until("a Job in place of the CronJob", lambda: shop.get("job", "hourly-s3sink"))
    shop.patch("once", {"run": "Continuous"})
    until("a Deployment in place of the Job", lambda: shop.get("deployment", "once-s3sink"))
    shop.patch("orders", {"state": "Stopped"})
    shop.until_reason("orders", "Ready", "Stopped")
    until("the Deployment to go", lambda: not shop.get("deployment", "orders-s3sink"))


def test_everything_works_without_a_forbidden_request(worked: Installed) -> None:
    assert "Stopped" in worked.shop.events("orders")
    assert "SpecRefused" in worked.shop.events("wrong")
    # Namespaces of other tests that are being deleted refuse new objects.
    ours = {"", worked.shop.name, worked.elsewhere.name}
    assert [request for request in worked.requests() if request.code in DENIED and request.namespace in ours] == []
    assert "forbidden" not in worked.operator.log
    assert "Traceback" not in worked.operator.log


def test_no_right_is_unused(worked: Installed) -> None:
    asks_for = granted(worked.install.rules)
    assert asks_for - used(worked.requests()) == TO_GIVE_AWAY


def test_no_right_on_secrets_and_no_wildcard(installed: Installed) -> None:
    for right in granted(installed.install.rules):
        assert right.resource != "secrets"
        assert "*" not in {right.group, right.resource, right.verb}


def test_a_namespaced_operator_stays_in_its_namespaces(worked: Installed) -> None:
    seen = {request.namespace for request in worked.requests() if request.right.resource != "namespaces"}
    if not worked.namespaced:
        assert "" in seen
        worked.elsewhere.until_served()
        return
    assert seen == {worked.shop.name}
    assert worked.elsewhere.status("orders") == {}
    assert worked.elsewhere.left_behind() == ["s3sink/orders"]
