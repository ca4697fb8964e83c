"""The operator installed by Helm on a cluster, with the commands of docs/chart.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster import Cluster
from tools.cluster.interface import ClusterFailed
from tools.cluster.namespace import DEFINITION, Namespace
from tools.parts.helm import CHART, NAMESPACE, RELEASE, helm
from tools.parts.processes import PartFailed
from tools.polling import until

INSTALLED = "S3SINK_E2E_IMAGE"
"""Environment: the operator is installed, with this image; whoever set the variable removes it after the tests."""
READY_SECONDS = 300
"""Usually 15 seconds. The first start of an image on a busy machine has taken more than two minutes."""
_CLUSTER_WIDE = "clusterroles,clusterrolebindings"
_OWNER = "meta.helm.sh/release-namespace"


def values(reference: str) -> dict[str, Any]:
    """The image that was loaded, and shorter intervals, so that tests wait less."""
    repository, _, tag = reference.rpartition(":")
    # There is only one node: when it is drained, the operator must still run to report it.
    drained = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "status": {"pollInterval": 3, "figuresInterval": 5},
        "drivers": {"grace": 20},
        "tolerations": [drained],
    }


@contextmanager
def installed(cluster: Cluster, reference: str) -> Iterator[HelmRelease]:
    """The operator for the whole cluster, with this image."""
    release = HelmRelease(cluster)
    if release.there:
        # It may manage other people's sinks: it gets this image, and stays installed.
        print(release.upgrade(values(reference)))
        yield release
        return
    print(release.install(values(reference)))
    yield release
    cluster.kubectl("delete", "s3sinks", "--all", "--all-namespaces", "--timeout=120s")
    release.remove()
    cluster.kubectl("delete", "customresourcedefinition", DEFINITION, "--timeout=120s")


@dataclass(frozen=True)
class HelmRelease:
    cluster: Cluster
    namespace: str = NAMESPACE

    @property
    def home(self) -> Namespace:
        return Namespace(self.cluster, self.namespace)

    @property
    def there(self) -> bool:
        found = helm("list", "--all", "--output", "json", *self._place)
        return any(one["name"] == RELEASE for one in json.loads(found))

    def install(self, values: Mapping[str, Any], chart: Path = CHART) -> str:
        said = self._until_ready("install", str(chart), "--create-namespace", values=values)
        restricted = "pod-security.kubernetes.io/enforce=restricted"
        self.cluster.kubectl("label", "namespace", self.namespace, restricted, "--overwrite")
        return said

    def upgrade(self, values: Mapping[str, Any]) -> str:
        return self._until_ready("upgrade", str(CHART), values=values)

    def test(self) -> str:
        return self._helm("test", "--timeout=120s")

    def uninstall(self) -> None:
        self._helm("uninstall", "--wait", "--timeout=120s")

    def remains(self) -> list[str]:
        """What is left of the release, except its namespace and the definition, which stay."""
        wide = json.loads(self.cluster.kubectl("get", _CLUSTER_WIDE, "--output", "json"))["items"]
        ours = [one for one in wide if one["metadata"].get("annotations", {}).get(_OWNER) == self.namespace]
        kept = self.home.kubectl("get", "secrets,services", "--output", "name").split()
        return [*(one["metadata"]["name"] for one in ours), *kept, *self.home.left_behind()]

    def remove(self) -> None:
        """Uninstalls the release, waits until nothing of it is left, and deletes its namespace."""
        self.uninstall()
        until("nothing of the release to be left", lambda: not self.remains(), 30)
        self.cluster.kubectl("delete", "namespace", self.namespace, "--timeout=60s")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Inside this block no operator runs."""
        self.home.kubectl("scale", "deployment", RELEASE, "--replicas=0")
        until("the operator to be gone", lambda: not self.home.objects("pods"), 60)
        try:
            yield
        finally:
            self.home.kubectl("scale", "deployment", RELEASE, "--replicas=1")
            self.home.kubectl("rollout", "status", f"deployment/{RELEASE}", "--timeout=120s")

    def story(self) -> str:
        """The operator's pods with their events and log: Helm itself only says that it waited too long."""
        parts = []
        for arguments in (
            ("describe", "pods"),
            ("get", "events", "--sort-by=.lastTimestamp"),
            ("logs", f"deployment/{RELEASE}", "--tail=60"),
            ("logs", f"deployment/{RELEASE}", "--tail=60", "--previous"),
        ):
            with suppress(ClusterFailed):
                parts.append(f"$ kubectl {' '.join(arguments)}\n{self.home.kubectl(*arguments)}")
        return "\n".join(parts)

    def _until_ready(self, verb: str, *arguments: str, values: Mapping[str, Any]) -> str:
        try:
            return self._helm(verb, *arguments, "--wait", f"--timeout={READY_SECONDS}s", values=values)
        except PartFailed as failure:
            raise PartFailed(f"{failure}\n{self.story()}") from None

    def _helm(self, verb: str, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        return helm(verb, RELEASE, *arguments, *self._place, values=values)

    @property
    def _place(self) -> tuple[str, ...]:
        return "--namespace", self.namespace, "--kubeconfig", str(self.cluster.kubeconfig)
