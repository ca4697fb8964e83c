"""A node without a kubelet: it marks every driver's pod as running, and answers `/status` for the driver.

Each pod gets an address from 127.0.0.0/8. One socket listens on all of them; the address of a request tells the pod.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from tools.cluster.client import Client, Document, Refused

PODS = "/api/v1/pods"
OURS = "app.kubernetes.io/managed-by=s3sink-operator"
SINK = "s3sink.dev/sink"
PATCHERS = 4
_GENERATION = re.compile(r"^  generation: (\d+)$", re.MULTILINE)

Answer = Callable[[BaseHTTPRequestHandler], None]
"""What a driver does with a request for its status, instead of the normal answer."""
Place = tuple[str, str]
"""Namespace and name of a sink."""


def report(generation: int = 1, **changes: Any) -> Document:
    """The report of an idle driver, in the words of the real one."""
    moment = "2026-11-16T11:00:00Z"
    words = {
        "Ready": ("Running", "the driver runs"),
        "LastFlushSucceeded": ("Succeeded", "no failure since"),
        "ExactlyOnce": ("ConditionalWrites", "the store's conditional writes work"),
        "CaughtUp": ("Level", "everything in Kafka is in the bucket"),
    }
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message}
        | {"lastTransitionTime": moment, "observedGeneration": generation}
        for kind, (reason, message) in words.items()
    ]
    offsets = [{"topic": "orders", "partition": n, "committed": 5000, "end": 5000, "lag": 0} for n in range(12)]
    return {
        "observedGeneration": generation,
        "phase": "Running",
        "conditions": conditions,
        "flush": {"lastTime": moment, "lastReason": "Interval", "records": 12000, "totalRecords": 60000},
        "retry": {"attempts": 0, "skippedRecords": 0},
        "lag": {"records": 0, "recordsToHighWatermark": 0, "seconds": 0.0},
        "offsets": offsets,
        "gaps": {"count": 0, "records": 0, "recent": []},
        "driver": {"epoch": 1},
    } | changes


@dataclass
class FakeNode:
    """`with FakeNode(kubeconfig) as node:`. Give `node.port` to the operator as the port of drivers."""

    kubeconfig: Path
    reports: dict[Place, Document] = field(default_factory=dict)
    """Reports of single drivers, instead of `report()`."""
    answers: dict[Place, Answer] = field(default_factory=dict)
    starts: bool = True
    """Whether pods start. Pods that are created while it is false start when it is true again."""
    _addresses: dict[str, Place] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)
    """By address: the generation of the manifest that the driver read at its start."""
    _over: threading.Event = field(default_factory=threading.Event)
    _work: queue.Queue[Document] = field(default_factory=queue.Queue)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _errors: list[Exception] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._client = Client.of(self.kubeconfig)
        self._server = _Server(("0.0.0.0", 0), self._handler())  # noqa: S104 - all of 127.0.0.0/8
        jobs = [self._server.serve_forever, self._watch, *[self._patch] * PATCHERS]
        self._threads = [threading.Thread(target=job, name="stand-in", daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._client.close()
        if error is None and self._errors:
            raise self._errors[0]

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def status(self, namespace: str, pod: str, **fields: Any) -> None:
        """Changes the status of a pod."""
        self._client.patch(f"/api/v1/namespaces/{namespace}/pods/{pod}/status", {"status": fields})

    def _watch(self) -> None:
        version = ""
        while not self._over.is_set():
            try:
                if not version:
                    listed = self._client.get(PODS, labelSelector=OURS)
                    version = listed["metadata"]["resourceVersion"]
                    for pod in listed["items"]:
                        if pod["status"]["phase"] == "Pending":
                            self._work.put(pod)
                for event in self._client.watch(PODS, labelSelector=OURS, resourceVersion=version, timeoutSeconds="5"):
                    if event["type"] == "ERROR":
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] == "ADDED":
                        self._work.put(event["object"])
            except (urllib3.exceptions.HTTPError, OSError, Refused) as error:
                # The API server may be restarting.
                if isinstance(error, Refused) and error.code < 500:
                    self._errors.append(error)
                    raise
                version = ""
                time.sleep(0.5)
            except Exception as error:
                self._errors.append(error)
                raise

    def _patch(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(queue.Empty):
                pod = self._work.get(timeout=0.5)
                if "deletionTimestamp" in pod["metadata"]:
                    continue
                if not self.starts or not self._start(pod):
                    self._work.put(pod)
                    time.sleep(0.1)

    def _start(self, pod: Document) -> bool:
        """Starts a pod. False: try again later."""
        metadata = pod["metadata"]
        number = next(self._numbers)
        address = f"127.{1 + number // 65025 % 250}.{number // 255 % 255}.{1 + number % 255 % 254}"
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": _now(),
            "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready", "ContainersReady")],
            "containerStatuses": [_container(c["name"], ready=True) for c in pod["spec"]["containers"]],
        }
        try:
            generation = self._generation(pod)
            if generation is None:
                # Like a kubelet, wait for a missing ConfigMap as long as the pod exists.
                return not self._client.exists(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")
            self._generations[address] = generation
            self._addresses[address] = (metadata["namespace"], metadata["labels"][SINK])
            self.status(metadata["namespace"], metadata["name"], **status)
        except urllib3.exceptions.HTTPError:
            # The API server may be restarting.
            return False
        except Refused as refused:
            if refused.code != 404:
                self._errors.append(refused)
        return True

    def _generation(self, pod: Document) -> int | None:
        """The generation of the manifest that the pod mounts; None while the ConfigMap is missing."""
        mounted = (volume.get("configMap", {}).get("name", "") for volume in pod["spec"].get("volumes") or ())
        name = next((name for name in mounted if name.endswith("-s3sink")), None)
        if name is None:
            return 1
        try:
            held = self._client.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{name}")
        except Refused as refused:
            if refused.code != 404:
                raise
            return None
        found = _GENERATION.search(held["data"]["sink.yaml"])
        return int(found[1]) if found else 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                place = node._addresses.get(self.connection.getsockname()[0], ("", ""))
                node.answers.get(place, node._well)(self)

            def log_message(self, format: str, *args: object) -> None:
                """No log of requests."""

        return Handler

    def _well(self, handler: BaseHTTPRequestHandler) -> None:
        address = handler.connection.getsockname()[0]
        place = self._addresses.get(address, ("", ""))
        document = self.reports.get(place) or report(self._generations.get(address, 1))
        content = json.dumps(document)
        tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:16]}"'
        if handler.headers.get("If-None-Match") == tag:
            handler.send_response(304)
            handler.end_headers()
            return
        body = json.dumps({**document, "reportedAt": _now()}).encode()
        handler.send_response(200)
        handler.send_header("ETag", tag)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """No traceback: the operator may time out, or be killed."""


def _container(name: str, *, ready: bool) -> Document:
    return {
        "name": name,
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "image": "stand-in",
        "imageID": "stand-in",
        "state": {"running": {"startedAt": _now()}},
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
