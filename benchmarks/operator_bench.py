"""`make bench-operator`: the cost of the operator with many sinks, on a real API server.

A fake node marks pods as running, and answers for their drivers. Everything else is real. The operator is a process
with the rights of its ServiceAccount.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.process_tree import Tree
from tools.cluster import BareCluster
from tools.cluster.client import NAMESPACES, Client, sinks
from tools.operator_harness import FakeNode, Operator, grant

RESULTS = Path(__file__).parent / "operator.json"
DEFINITION = Path(__file__).parents[1] / "crds" / "s3sinks.s3sink.dev.yaml"
NAMESPACE, SPREAD = "bench", 10
DEPLOYMENTS = "/apis/apps/v1/deployments"
OURS = "app.kubernetes.io/managed-by=s3sink-operator"
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
KINDS = (
    "s3sinks",
    "configmaps",
    "serviceaccounts",
    "deployments",
    "jobs",
    "cronjobs",
    "roles",
    "rolebindings",
    "events",
)
MIB = 2**20
SPEC = {
    "source": {"bootstrapServers": "kafka:9092", "topics": ["orders", "payments"]},
    "destination": {"bucket": "lake", "prefix": "raw", "credentials": {"secretRef": {"name": "s3"}}},
    "format": {"type": "Parquet"},
}


@dataclass(frozen=True)
class Goal:
    what: str
    measured: float
    most: float
    unit: str

    @property
    def met(self) -> bool:
        return self.measured <= self.most


@dataclass
class Arrivals:
    """The time of each sink's Deployment, from a watch."""

    client: Client
    at: dict[tuple[str, str], float] = field(default_factory=dict)

    def follow(self) -> None:
        version = self.client.get(DEPLOYMENTS, labelSelector=OURS, limit="1")["metadata"]["resourceVersion"]
        thread = threading.Thread(target=self._follow, args=(version,), name="arrivals", daemon=True)
        thread.start()

    def _follow(self, version: str) -> None:
        while True:
            for event in self.client.watch(DEPLOYMENTS, labelSelector=OURS, resourceVersion=version):
                metadata = event["object"]["metadata"]
                version = metadata["resourceVersion"]
                if event["type"] == "ADDED":
                    self.at[metadata["namespace"], metadata["name"].removesuffix("-s3sink")] = time.monotonic()


@dataclass
class Bench:
    console: Console
    cluster: BareCluster
    node: FakeNode
    operator: Operator
    count: int

    def __post_init__(self) -> None:
        self.api = Client.of(self.cluster.kubeconfig)
        for n in range(SPREAD):
            self.api.post(NAMESPACES, {"metadata": {"name": f"{NAMESPACE}-{n}"}})

    def fill(self) -> float:
        """Seconds until all sinks run, if they are applied at once."""
        began = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._apply, range(self.count)))
        self._until(lambda: self._running() >= self.count, 1800, "all sinks to run")
        return time.monotonic() - began

    def arrivals(self, more: int, every: float) -> list[float]:
        """Seconds from apply to Deployment, for sinks that are applied one by one."""
        arrivals = Arrivals(Client.of(self.cluster.kubeconfig))
        arrivals.follow()
        applied = {}
        for n in range(self.count, self.count + more):
            applied[self._apply(n)] = time.monotonic()
            time.sleep(every)
        self._until(lambda: applied.keys() <= arrivals.at.keys(), 120, "the new sinks' Deployments")
        self.count += more
        self._until(lambda: self._running() >= self.count, 300, "the new sinks to run")
        return [arrivals.at[place] - at for place, at in applied.items()]

    def restart(self, changed: int) -> float:
        """Seconds from start until all are reconciled, with some changes made before the start."""
        self.operator.stop()
        names = [self._place(n) for n in range(0, self.count, self.count // changed)]
        for namespace, name in names:
            self.api.patch(sinks(namespace, name), {"spec": {"flush": {"records": 777}}})
        began = time.monotonic()
        self.operator.start()
        self._until(lambda: self._reconciled() >= self.count, 600, "every sink to be reconciled")
        self._until(lambda: all(map(self._is_current, names)), 600, "the changes to be applied")
        return time.monotonic() - began

    def idle(self, seconds: float) -> dict[str, float]:
        """The cost when nothing happens."""
        self._settle()
        tree = Tree(self.operator.pid)
        cpu, requests = tree.cpu_seconds(), self._requests()
        time.sleep(seconds)
        spent, made = tree.cpu_seconds() - cpu, self._requests()
        found = {key: made[key] - requests[key] for key in made}
        return {
            "cpu_percent": 100 * spent / seconds,
            "requests_per_minute": 60 * found["all"] / seconds,
            "writes": found["writes"],
            "mib": tree.memory() / MIB,
        }

    def peak_mib(self) -> float:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.operator.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def _settle(self) -> None:
        """Waits until nothing was written for half a minute."""
        before, since = -1.0, time.monotonic()
        while time.monotonic() - since < 30:
            now = self.operator.metric("s3sink_operator_writes_total")
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(2)

    def _place(self, n: int) -> tuple[str, str]:
        return f"{NAMESPACE}-{n % SPREAD}", f"sink-{n:05d}"

    def _apply(self, n: int) -> tuple[str, str]:
        namespace, name = self._place(n)
        document = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": name}, "spec": SPEC}
        self.api.post(sinks(namespace), document)
        return namespace, name

    def _running(self) -> float:
        return self.operator.metric("s3sink_operator_sinks", phase="Running")

    def _reconciled(self) -> float:
        return self.operator.metric("s3sink_operator_reconciles_total", outcome="ok")

    def _is_current(self, place: tuple[str, str]) -> bool:
        found = self.api.get(sinks(*place))
        return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])

    def _requests(self) -> dict[str, float]:
        """Requests for our kinds, from any client, by the API server's own count."""
        text = self.cluster.kubectl("get", "--raw", "/metrics")
        made = {"all": 0.0, "writes": 0.0}
        for line in text.splitlines():
            if line.startswith("apiserver_request_total{"):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
                if labels["resource"] in (*KINDS, "pods"):
                    value = float(line.rpartition(" ")[2])
                    made["all"] += value
                    made["writes"] += value if labels["verb"] in WRITES and labels["resource"] in KINDS else 0
        return made

    def _until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        deadline, said = time.monotonic() + seconds, time.monotonic()
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"timed out after {seconds:.0f} s waiting for {what}:\n{self.operator.log[-3000:]}")
            if time.monotonic() - said > 15:
                said = time.monotonic()
                self.console.print(f"  waiting for {what}: {self._running():.0f} run")
            time.sleep(0.5)


@contextmanager
def world(console: Console, count: int) -> Iterator[Bench]:
    with BareCluster("control") as cluster, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        cluster.kubectl("apply", "--filename", str(DEFINITION))
        cluster.kubectl("wait", "--for=create", "customresourcedefinition/s3sinks.s3sink.dev", "--timeout=30s")
        time.sleep(1)
        grant(cluster)
        with FakeNode(cluster.kubeconfig) as node:
            operator = Operator(cluster, Path(folder), "--driver-port", str(node.port))
            operator.start()
            try:
                yield Bench(console, cluster, node, operator, count)
            finally:
                operator.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-operator", description=__doc__)
    parser.add_argument("--sinks", type=int, default=1000, help="number of sinks before the measurement")
    parser.add_argument("--more", type=int, default=50, help="number of sinks applied one by one")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between them")
    parser.add_argument("--idle", type=float, default=120.0, help="seconds to measure at idle")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a goal is missed")
    given = parser.parse_args()
    console = Console()
    with world(console, given.sinks) as bench:
        filled = bench.fill()
        console.print(f"{given.sinks} sinks applied at once run after {filled:.0f} s")
        waits = bench.arrivals(given.more, given.every)
        restarted = bench.restart(20)
        idle = bench.idle(given.idle)
        peak = bench.peak_mib()
    found: dict[str, Any] = {
        "sinks": bench.count,
        "all_at_once_s": filled,
        "apply_to_children_p50_s": median(waits),
        "apply_to_children_p95_s": quantiles(waits, n=20)[-1],
        "restart_to_reconciled_s": restarted,
        "idle": idle,
        "peak_mib": peak,
    }
    goals = [
        Goal("apply to children, p95", found["apply_to_children_p95_s"], 3.0, "s"),
        Goal("restart to all reconciled", restarted, 120.0, "s"),
        Goal("idle: CPU of one core", idle["cpu_percent"], 5.0, "%"),
        Goal("idle: memory", idle["mib"], 250.0, "MiB"),
        Goal("idle: writes to the API server", idle["writes"], 0.0, ""),
    ]
    show(console, found, goals)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    return 1 if given.strict and not all(goal.met for goal in goals) else 0


def show(console: Console, found: dict[str, Any], goals: list[Goal]) -> None:
    table = Table(title=f"{found['sinks']} sinks", title_justify="left")
    for column in ("what", "measured", "goal", ""):
        table.add_column(column)
    for goal in goals:
        verdict = "met" if goal.met else "missed"
        table.add_row(goal.what, f"{goal.measured:.2f} {goal.unit}", f"{goal.most:g} {goal.unit}", verdict)
    table.add_row("apply to children, p50", f"{found['apply_to_children_p50_s']:.2f} s", "", "")
    table.add_row("idle: requests to the API server a minute", f"{found['idle']['requests_per_minute']:.0f}", "", "")
    table.add_row("peak memory", f"{found['peak_mib']:.0f} MiB", "", "")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
