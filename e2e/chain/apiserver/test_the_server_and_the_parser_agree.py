"""What the API server takes and refuses, and that the parser says the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from hypothesis import HealthCheck, given, settings
from kubernetes import client, config

from e2e.chain.sinks import ROOT
from e2e.cluster import Cluster
from s3sink_job.spec import SpecError, parse
from tests.spec.documents import documents, everything_built, full, minimal, put
from tests.spec.test_mistakes_are_named import REFUSED

Try = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def tried(cluster: Cluster) -> Iterator[Try]:
    """Creates a document on the server without storing it; what was refused, or nothing."""
    loaded = client.Configuration()
    config.load_kube_config(str(cluster.kubeconfig), client_configuration=loaded)  # type: ignore[no-untyped-call]
    pool = urllib3.PoolManager(
        cert_reqs="CERT_REQUIRED", ca_certs=loaded.ssl_ca_cert, cert_file=loaded.cert_file, key_file=loaded.key_file
    )

    def create(document: dict[str, Any]) -> str:
        document = copy.deepcopy(document)
        document["metadata"] = {"name": document["metadata"]["name"]}
        path = "/apis/s3sink.dev/v1alpha1/namespaces/default/s3sinks?dryRun=All&fieldValidation=Strict"
        headers = {"Content-Type": "application/json"}
        answer = pool.request("POST", f"{loaded.host}{path}", body=json.dumps(document), headers=headers)
        return "" if answer.status == 201 else str(json.loads(answer.data)["message"])

    yield create
    pool.clear()


def test_examples_are_taken(tried: Try) -> None:
    for file in sorted(Path(ROOT / "examples").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "S3Sink":
                assert tried(json.loads(json.dumps(document, default=_instant))) == "", file


def _instant(value: Any) -> str:
    return str(value.isoformat()).replace("+00:00", "Z")


def test_the_smallest_and_the_fullest_are_taken(tried: Try) -> None:
    assert tried(minimal()) == ""
    document = full()
    del document["spec"]["spark"]["driver"]["podTemplate"]
    assert tried(document) == ""


SPEC = "spec"
# path, value, what the server says
AGAINST_THE_RULES = [
    ("source.topicPattern", "a.*", "exactly one of topics and topicPattern must be set"),
    ("source.topics", [], "exactly one of topics and topicPattern must be set"),
    ("source.topics", ["a", "a"], "Duplicate value"),
    ("schedule", "0 * * * *", "schedule: must be set with run: Scheduled, and only there"),
    ("run", "Scheduled", "schedule: must be set with run: Scheduled, and only there"),
    ("mode", "FullRefresh", "mode: FullRefresh needs run: Once or Scheduled"),
    ("source.startingOffsets", {}, "position: Required value"),
    ("source.startingOffsets", {"position": "Timestamp"}, "timestamp: must be set with position: Timestamp"),
    (
        "source.startingOffsets",
        {"position": "Latest", "timestamp": "2026-01-01T00:00:00Z"},
        "timestamp: must be set with position: Timestamp, and only there",
    ),
    ("source.startingOffsets", {"position": "Offsets"}, "offsets: must be set with position: Offsets"),
    ("destination.encryption", {"type": "KMS"}, "keyId: must be set with type: KMS"),
    ("destination.encryption", {"type": "AES256", "keyId": "x"}, "keyId: must be set with type: KMS, and only there"),
    ("layout.partitionBy", [{"type": "Field"}], "path: must be set with type: Field"),
    ("layout.partitionBy", [{"type": "Topic", "as": "x"}], "as: is only for type Field"),
    ("layout.partitionBy", [{"type": "Header"}], "name: must be set with type: Header"),
    (
        "layout.partitionBy",
        [{"type": "Time", "source": "Field", "format": "yyyy"}],
        "path: must be set with source: Field",
    ),
    ("layout.onMissingValue", "DeadLetter", "errors.deadLetter: must be set"),
    ("format.compression", {"codec": "Snappy"}, "compression.codec: Json takes"),
    ("format.compression", {"codec": "Gzip", "level": 10}, "level: must lie between 0 and 9 for Gzip"),
    ("format.compression", {"codec": "None", "level": 1}, "have no levels"),
    ("format", {"type": "Text", "columns": {"meta": "Kafka"}}, "columns.meta: must be None"),
    ("source.value", {"format": "Avro"}, "Avro needs schemaRegistry or an inline schema"),
    ("source.value", {"format": "Protobuf"}, "must be set with Protobuf"),
    ("errors", {"records": "DeadLetter"}, "deadLetter: must be set"),
    ("errors", {"deadLetter": {}}, "exactly one of topic and prefix"),
    ("errors", {"deadLetter": {"prefix": "x", "topic": "y"}}, "exactly one of topic and prefix"),
    ("transform", {}, "must be set, unless where is"),
    ("flush.interval", "5", "spec.flush.interval"),
    ("flush.interval", "0s", "must be longer than 0s"),
    ("flush.records", 0, "greater than or equal to 1"),
    ("destination.partSize", "1Mi", "must be at least 5Mi"),
    ("destination.partSize", "64mb", "spec.destination.partSize"),
    ("destination.bucket", "s3://lake", "spec.destination.bucket"),
    ("destination.credentials", {"secretRef": {"name": "a", "namespace": "b"}}, "unknown field"),
    ("spark.driver.memory", 2, "must be at least 512Mi"),
    ("state", "running", "Unsupported value"),
    ("flushh", {}, "unknown field"),
]


@pytest.mark.parametrize(
    ("path", "value", "said"), AGAINST_THE_RULES, ids=[f"{path}={value}" for path, value, _ in AGAINST_THE_RULES]
)
def test_what_makes_no_sense_is_refused_by_the_server(tried: Try, path: str, value: Any, said: str) -> None:
    document = put(minimal(), f"spec.{path}", value)
    assert said in tried(document)
    with everything_built(), pytest.raises(SpecError):
        parse(document)


@pytest.mark.parametrize(("name", "said"), [("a" * 53, "at most 52 characters"), ("a.b", "without dots")])
def test_names_that_children_could_not_have_are_refused(tried: Try, name: str, said: str) -> None:
    assert tried(put(minimal(), "metadata.name", "a" * 52)) == ""
    assert said in tried(put(minimal(), "metadata.name", name))


@given(documents())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_whatever_the_parser_takes_the_server_takes(tried: Try, document: dict[str, Any]) -> None:
    with everything_built():
        parse(document)
    # Of numbers a schema takes whole ones or text only: half a CPU is 500m or "0.5" there.
    for pod in ("driver", "executor"):
        request = document["spec"].get("spark", {}).get(pod, {}).get("cpuRequest")
        if isinstance(request, float):
            document = put(document, f"spec.spark.{pod}.cpuRequest", str(request))
    assert tried(document) == ""


def test_what_only_the_parser_finds_is_known(tried: Try) -> None:
    """The API server refuses most mistakes itself; the operator shows the rest as Accepted=False."""
    missed = []
    for path, value, _, _ in REFUSED:
        if not path.startswith("spec.") or value is None:
            continue
        document = put(minimal(), path, value)
        if tried(document) == "":
            missed.append(path)
    checked = [path for path, value, _, _ in REFUSED if path.startswith("spec.") and value is not None]
    assert len(missed) < len(checked) / 3, missed
