"""The measured cases, as manifests: all read the same records, and read or write them differently."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.json_schema_topic import SCHEMA
from benchmarks.topic import SAMPLE
from s3sink_api.formats import INPUT_FORMATS, InputFormat
from s3sink_api.spec import SpecError, parse
from s3sink_job.base.secrets import Secrets, write_secrets
from tools.parts.s3 import S3Server

LIMIT, LIMIT_V2, HAND_OVER, LINES, COLUMNS = "limit-noop", "limit-noop-v2", "hand-over", "json-json", "json-parquet"
KINDS = {LIMIT: "limit", LIMIT_V2: "limit-v2", HAND_OVER: "hand-over"}
FORMATS: dict[str, dict[str, Any]] = {
    LIMIT: {"type": "Json"},
    LIMIT_V2: {"type": "Json"},
    HAND_OVER: {"type": "Json"},
    LINES: {"type": "Json"},
    COLUMNS: {"type": "Parquet", "compression": {"codec": "Zstd"}},
}
SECRET = "s3"
WARM_UP = "warm-up"


@dataclass(frozen=True)
class Case:
    """`kind` is the program to run (see `measured_process.py`), `name` is also the sink's name."""

    name: str
    kind: str
    format: dict[str, Any]
    flush: dict[str, Any] = field(default_factory=lambda: {"interval": "1h"})
    layout: dict[str, Any] = field(default_factory=dict)
    memory: str = "2Gi"
    topic: str = ""
    """The topic with its records; empty for the topic that all cases of a run share."""
    input: InputFormat = "Json"
    schema: str = ""
    """Supplied by the manifest."""
    transform: dict[str, Any] = field(default_factory=dict)

    @property
    def warm_up(self) -> str:
        return f"{self.topic}-{WARM_UP}" if self.topic else WARM_UP

    def refusal(self) -> str:
        """Why the product refuses the case; empty if it does not."""
        try:
            parse(document(self, bootstrap="kafka:9092", endpoint="http://s3", cores=1, registry="http://registry"))
        except SpecError as error:
            return str(error)
        return ""


def _by(item: dict[str, Any]) -> dict[str, Any]:
    return {"partitionBy": [{"type": "Topic"}, item], "hiveStyle": True}


CASES = {name: Case(name, KINDS.get(name, "drain"), format) for name, format in FORMATS.items()}
_BY_FIELD = {"type": "Field", "path": ["customer", "country"]}
_BY_HOUR = {"type": "Time", "source": "Record", "format": "'hour='yyyy-MM-dd-HH"}
REFERENCE = "parquet"
SHAPES = {
    case.name: case
    for case in (
        Case(REFERENCE, "drain", FORMATS[COLUMNS]),
        Case("parquet-by-field", "drain", FORMATS[COLUMNS], layout=_by(_BY_FIELD)),
        Case("parquet-by-hour", "drain", FORMATS[COLUMNS], layout=_by(_BY_HOUR)),
        Case("avro", "drain", {"type": "Avro", "compression": {"codec": "Zstd"}}),
        Case("csv", "drain", {"type": "Csv"}),
        Case("json-gzip", "drain", {"type": "Json", "compression": {"codec": "Gzip"}}),
    )
}
"""The cost of other formats and layouts, compared with Parquet."""
UNCHANGED, KEEPS_ALL = "parquet-beside-transforms", "parquet-where-keeps-all"
DROPS_MOST, HEADERS_TOPIC = "parquet-where-header-drops-90-percent", "events-with-headers"
TRANSFORMS = {
    name: Case(name, "drain", FORMATS[COLUMNS], topic=HEADERS_TOPIC, transform=transform)
    for name, transform in {
        UNCHANGED: {},
        KEEPS_ALL: {"where": "quantity > 0 AND customer.id >= 0"},
        DROPS_MOST: {"where": f"_headers['{SAMPLE}'] = 'yes'"},
    }.items()
}
"""The cost of transforms, compared with Parquet without one."""
BESIDE, AVRO, PROTOBUF = "json-parquet-beside-avro", "avro-parquet", "protobuf-parquet"
LAST_VERSION, VERSIONS = "avro-parquet-last-version", "avro-parquet-10-versions"
AVRO_TOPIC, LAST_VERSION_TOPIC, VERSIONS_TOPIC = "avro-events", "avro-last-version", "avro-versions"
PROTOBUF_TOPIC = "protobuf-events"
SUPPLIED, JSON_SCHEMA, JSON_SCHEMA_TOPIC = "json-supplied-parquet", "json-schema-parquet", "json-schema-events"
TYPED = {
    case.name: case
    for case in (
        Case(BESIDE, "drain", FORMATS[COLUMNS]),
        Case(AVRO, "drain", FORMATS[COLUMNS], topic=AVRO_TOPIC, input="Avro"),
        Case("avro-avro", "drain", SHAPES["avro"].format, topic=AVRO_TOPIC, input="Avro"),
        # The rows of the ten versions, with one schema: the difference is the cost of versions.
        Case(LAST_VERSION, "drain", FORMATS[COLUMNS], topic=LAST_VERSION_TOPIC, input="Avro"),
        Case(VERSIONS, "drain", FORMATS[COLUMNS], topic=VERSIONS_TOPIC, input="Avro"),
        Case(PROTOBUF, "drain", FORMATS[COLUMNS], topic=PROTOBUF_TOPIC, input="Protobuf"),
        Case(SUPPLIED, "drain", FORMATS[COLUMNS], schema=SCHEMA),
        Case(JSON_SCHEMA, "drain", FORMATS[COLUMNS], topic=JSON_SCHEMA_TOPIC, input="JsonSchema"),
    )
}
"""Records with a schema, compared with the same records as JSON."""
MANY = Case(
    "parquet-2000-values", "drain", FORMATS[COLUMNS], layout=_by({"type": "Field", "path": ["store"]}), memory="4Gi"
)
"""As many partition values as a slice may have. A quarter of the memory is the JVM's heap."""
# A flush is due when its records are there.
SMALL = Case("small-flush", "flush", FORMATS[LINES], {"interval": "1h", "records": 1000})


def document(case: Case, *, bootstrap: str, endpoint: str, cores: int, registry: str = "") -> dict[str, Any]:
    """Each round names topic and bucket."""
    value: dict[str, Any] = {"format": case.input, "schema": case.schema}
    if INPUT_FORMATS[case.input].registry:
        value["schemaRegistry"] = {"url": registry}
    destination = {"bucket": "bench", "prefix": "raw", "endpoint": endpoint, "region": S3Server.region}
    return {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": case.name},
        "spec": {
            "source": {"bootstrapServers": bootstrap, "topics": ["bench"], "value": value},
            "destination": {**destination, "credentials": {"secretRef": {"name": SECRET}}},
            "format": case.format,
            "layout": case.layout,
            "flush": case.flush,
            **({"transform": case.transform} if case.transform else {}),
            # Failures must show at once: retries would distort the measurement.
            "errors": {"retries": {"max": 0}},
            "spark": {"driver": {"cores": cores, "memory": case.memory}},
        },
    }


def secrets(folder: Path, s3: S3Server) -> Secrets:
    keys = {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key}
    return write_secrets(folder, {SECRET: {name: key.encode() for name, key in keys.items()}})
