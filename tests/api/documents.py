"""Manifests for the tests of the spec: the smallest, the fullest, and any valid one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import yaml
from hypothesis import strategies as st

from s3sink_api.spec import CODECS, LEVELS, S3Sink, SpecError, parse

Document = dict[str, Any]
Steps = tuple[str | int, ...]


def minimal() -> Document:
    return {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": "orders"},
        "spec": {
            "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"]},
            "destination": {"bucket": "lake"},
            "format": {"type": "Json"},
        },
    }


FULL = """
apiVersion: s3sink.dev/v1alpha1
kind: S3Sink
metadata: {name: orders, namespace: shop, uid: abc, generation: 4, labels: {team: data}, annotations: {a: b}}
spec:
  state: Running
  run: Scheduled
  schedule: "0 * * * *"
  mode: FullRefresh
  allowEmpty: true
  reset: {nonce: "2026-11-01", to: {position: Timestamp, timestamp: "2026-01-01T00:00:00Z"}}
  source:
    bootstrapServers: kafka:9092
    topics: [orders, payments]
    startingOffsets: {position: Offsets, offsets: [{topic: orders, partition: 0, offset: 7}]}
    onUnroutedTopic: Default
    onDataLoss: Skip
    isolation: ReadUncommitted
    maxBytesPerSecond: 50Mi
    properties: {fetch.max.bytes: "1000000"}
    propertiesFrom: [{secretRef: {name: kafka-auth}}]
    publishOffsetsTo: orders-s3
    key: {format: Json, validate: false, times: Typed}
    value:
      format: Avro
      validate: false
      times: Typed
      schemaRegistry:
        type: Confluent
        url: https://registry
        credentialsFrom: {secretRef: {name: registry}}
        caFrom: {secretRef: {name: ca}}
        certFrom: {secretRef: {name: client}}
  destination:
    bucket: lake
    prefix: raw
    statePrefix: .s3sink
    region: eu-central-1
    endpoint: https://s3.example.com:9000
    caFrom: {secretRef: {name: ca}}
    pathStyle: true
    credentials: {secretRef: {name: s3}}
    assumeRole: {arn: "arn:aws:iam::123456789012:role/sink", externalId: "42", sessionName: orders, endpoint: "https://sts"}
    proxy: {url: "http://proxy:3128", credentialsFrom: {secretRef: {name: proxy}}}
    timeouts: {connect: 5s, read: 30s}
    encryption: {type: KMS, keyId: alias/lake}
    storageClass: STANDARD_IA
    tags: {team: data}
    acl: BucketOwnerFullControl
    requesterPays: true
    maxConnections: 20
    partSize: 16Mi
  layout:
    partitionBy:
      - {type: Topic}
      - {type: Partition}
      - {type: Field, path: [customer, country], as: country}
      - {type: Key, path: [id]}
      - {type: Header, name: region, as: area}
      - {type: Time, source: Field, path: [at], format: "'year='yyyy", timezone: UTC, locale: en, every: 1h}
    hiveStyle: true
    onMissingValue: DeadLetter
    objectName: Lenses
    padding: {offset: 12, partition: 4}
    topicNames: [{topic: orders, as: sink_orders}]
    topicReplacement: {pattern: "-", replacement: _}
    suffix: _a
    extension: pq
  format:
    type: Parquet
    compression: {codec: Zstd, level: 3}
    csv: {header: true, delimiter: ",", quote: Minimal}
    parquet: {rowGroupBytes: 32Mi, dictionary: false, statistics: false, timestamps: Micros}
    columns: {meta: Airbyte, flatten: true}
    envelope: {enabled: false, key: false, value: true, headers: false, metadata: false, headersAs: Map, keyAs: Fields}
    schemaEvolution: {mode: Full, onChange: Roll}
  flush: {records: 50000, bytes: 500Mi, interval: 30m, aligned: 15m, timezone: Europe/Berlin, recordWindow: 1h}
  delivery: AtLeastOnce
  nullValues: Separate
  transform:
    unwrap: Debezium
    debezium: {deletes: Drop, addFields: [op]}
    steps:
      - {type: Drop, fields: [a]}
      - {type: Rename, field: b, as: c}
      - {type: Mask, fields: [d], replacement: x}
      - {type: Insert, field: e, source: Topic}
      - {type: Insert, field: f, value: fixed}
      - {type: Cast, fields: [g], to: Int64}
      - {type: Flatten, separator: _}
      - {type: Hoist, field: h}
      - {type: Extract, field: h}
    select: ["*", "upper(country) AS cc"]
    where: "amount > 0"
  routes:
    - topics: [payments]
      source:
        key: {format: Avro, schema: '"long"', validate: false, times: Typed}
        value:
          format: Avro
          validate: false
          times: Typed
          schemaRegistry:
            type: Glue
            region: eu-central-1
            endpoint: https://glue
            credentialsFrom: {secretRef: {name: other}}
            caFrom: {secretRef: {name: ca}}
            assumeRole: {arn: "arn:aws:iam::1:role/schemas", externalId: "42", sessionName: pay, endpoint: "https://sts"}
            proxy: {url: "http://proxy:3128", credentialsFrom: {secretRef: {name: proxy}}}
      destination: {bucket: vault, prefix: pay}
      layout: {partitionBy: [{type: Topic}], hiveStyle: false, onMissingValue: Fail, objectName: Offset,
               padding: {offset: 3, partition: 2}, suffix: x, extension: y}
      format:
        type: Avro
        compression: {codec: Xz, level: 3}
        csv: {header: true, delimiter: ",", quote: Minimal}
        parquet: {rowGroupBytes: 64Mi, dictionary: true, statistics: true, timestamps: Unchanged}
        columns: {meta: Quix, flatten: false}
        envelope: {enabled: false, key: true, value: true, headers: true, metadata: true, headersAs: List, keyAs: Plain}
        schemaEvolution: {mode: None, onChange: Merge}
      flush: {records: 5, bytes: 1Mi, interval: 1m, aligned: 1m, timezone: UTC, recordWindow: 1m}
  errors:
    records: DeadLetter
    maxPerFlush: 10
    maxPercent: 5
    deadLetter: {topic: orders-dlq, replicationFactor: 3, headers: true}
    logRecords: true
    retries: {max: 3, backoff: 2s, maxBackoff: 10s}
    requestRetries: {max: 2, backoff: 10ms}
  spark:
    mode: Cluster
    image: registry.example.com/s3sink:1.0
    driver: {cores: 2, cpuRequest: 250m, memory: 4Gi, spill: 1Gi, podTemplate: {spec: {selector: {a: null}}}}
    executor: {instances: 3, cores: 2, cpuRequest: "1", memory: 1Gi, spill: 1Gi, scaleToZero: false}
    conf: {spark.sql.session.timeZone: UTC}
    serviceAccountName: sink
    serviceAccountAnnotations: {eks.amazonaws.com/role-arn: arn}
"""


_full: Document = yaml.safe_load(FULL)


def full() -> Document:
    return copy.deepcopy(_full)


@contextmanager
def everything_built() -> Iterator[None]:
    """The resource as it will be, for rules that do not wait for their feature."""
    with mock.patch("s3sink_api.spec.not_built.NOT_BUILT", ()):
        yield


def put(document: Document, path: str | Steps, value: Any) -> Document:
    """A copy with the value at the path, sections made on the way."""
    changed: Any = copy.deepcopy(document)
    steps = tuple(path.split(".")) if isinstance(path, str) else path
    place = changed
    for step in steps[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[steps[-1]] = value
    result: Document = changed
    return result


def drop(document: Document, path: str) -> Document:
    changed = copy.deepcopy(document)
    *steps, last = path.split(".")
    place = changed
    for step in steps:
        place = place[step]
    del place[last]
    return changed


def errors_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The messages by their paths; none for a valid document."""
    try:
        parse(document)
    except SpecError as error:
        found = error
    else:
        return {}
    assert len({e.path for e in found.errors}) == len(found.errors)
    assert str(found) == "\n".join(f"{e.path}: {e.message}" for e in found.errors)
    return {e.path: e.message for e in found.errors}


def parsed(path: str, value: Any) -> S3Sink:
    with everything_built():
        return parse(put(minimal(), path, value))


def places(value: Any, at: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Every field and item of a document, but nothing inside of a pod template."""
    if at:
        yield at, value
    if at and at[-1] == "podTemplate":
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*at, index))


def written(steps: Steps) -> str:
    text = str(steps[0])
    for step in steps[1:]:
        text += f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step}]"
    return text


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


_quantities = st.one_of(
    st.integers(64 * 2**20, 2**32), st.integers(64, 4096).map("{}Mi".format), st.sampled_from(["1G", "1.5Gi"])
)
_large = st.integers(1, 64).map("{}Gi".format)
_durations = st.one_of(
    st.integers(1, 10**6).map("{}ms".format), st.integers(1, 99).map("{}m30s".format), st.just("1.5h")
)
_words = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True)
_topics = st.lists(st.from_regex(r"[a-zA-Z0-9_-]{1,30}", fullmatch=True), min_size=1, max_size=4, unique=True)
_references = _words.map(lambda name: {"secretRef": {"name": name}})
_maps = st.dictionaries(_words, st.text("abc 0", max_size=5), max_size=3)
_paths = st.lists(st.text("ab.é", min_size=1, max_size=4), min_size=1, max_size=3)
_instants = st.datetimes().map(
    lambda at: at.replace(year=2000 + at.year % 100).isoformat(timespec="microseconds") + "Z"
)


@st.composite
def _starts(draw: st.DrawFn, topics: list[str]) -> Document:
    match draw(st.sampled_from(["Earliest", "Latest", "Timestamp", "Offsets"])):
        case "Timestamp":
            return {"position": "Timestamp", "timestamp": draw(_instants)}
        case "Offsets":
            keys = st.tuples(st.sampled_from(topics), st.integers(0, 99))
            chosen = draw(st.dictionaries(keys, st.integers(0, 2**63 - 1), min_size=1, max_size=3))
            offsets = [{"topic": t, "partition": p, "offset": o} for (t, p), o in chosen.items()]
            return {"position": "Offsets", "offsets": offsets}
        case position:
            return {"position": position}


@st.composite
def _ends(draw: st.DrawFn, topics: list[str]) -> Document:
    """After any start."""
    match draw(st.sampled_from(["Latest", "Timestamp", "Offsets"])):
        case "Timestamp":
            return {"position": "Timestamp", "timestamp": "2999-12-31"}
        case "Offsets":
            listed = [{"topic": draw(st.sampled_from(topics)), "partition": 7, "offset": 2**63 - 1}]
            return {"position": "Offsets", "offsets": listed}
        case position:
            return {"position": position}


@st.composite
def _formats(draw: st.DrawFn) -> Document:
    kind = draw(st.sampled_from(sorted(CODECS)))
    parts = _some(key=st.booleans(), headers=st.booleans(), metadata=st.booleans())
    format_ = draw(_some(envelope=parts, schemaEvolution=_some(mode=st.just("None"))))
    format_["type"] = kind
    if draw(st.booleans()):
        codec = draw(st.sampled_from(CODECS[kind]))
        format_["compression"] = {"codec": codec}
        if codec in LEVELS and kind != "Orc" and draw(st.booleans()):
            format_["compression"]["level"] = draw(st.integers(*LEVELS[codec]))
    if kind not in {"Csv", "Text", "Bytes"} and draw(st.booleans()):
        format_["envelope"] = format_.get("envelope", {}) | {"enabled": True}
    elif kind not in {"Text", "Bytes"}:
        format_["columns"] = draw(_some(meta=st.sampled_from(["None", "Kafka", "Quix", "Airbyte"])))
        if format_["columns"].get("meta") in {"Airbyte", "Quix"}:
            format_["columns"] |= draw(_some(flatten=st.booleans()))
    if kind == "Csv":
        format_["csv"] = draw(_some(header=st.booleans(), delimiter=st.sampled_from(",;\t")))
    if kind == "Parquet":
        format_["parquet"] = draw(
            _some(
                rowGroupBytes=_quantities, dictionary=st.booleans(), timestamps=st.sampled_from(["Unchanged", "Micros"])
            )
        )
    return format_


@st.composite
def _formats_of_routes(draw: st.DrawFn) -> Document:
    """Either says all that depends on the type, or inherits all of it."""
    if draw(st.booleans()):
        return {"schemaEvolution": {"mode": "Full"}}
    format_ = draw(_formats())
    format_["compression"] = format_.get("compression", {"codec": "None"})
    format_["columns"] = {"meta": "None", "flatten": False} | format_.get("columns", {})
    format_["envelope"] = {"enabled": False} | format_.get("envelope", {})
    return format_


def _named(item: Document) -> str:
    """What hive style would call the folder; all of an item that it does not name."""
    default = {"Partition": "partition", "Key": "key", "Header": item.get("name")}.get(item["type"])
    return item.get("as") or item.get("path", [default])[-1] or str(item)


_names = st.sampled_from(["x", "topic", "p 1", "été"])
_patterns = st.sampled_from(["yyyy", "'year='yyyy/'month='MM", "yyyy-MM-dd'T'HH", "EEEE, d. MMM", "''yy/'a/b'"])


@st.composite
def _items(draw: st.DrawFn, records: tuple[str, str], *, single: bool) -> Document:
    """`records` are the formats of keys and values; objects of a single record cannot go by the wall clock."""
    key, value = records
    sources = ["Record", *([] if single else ["Wallclock"]), *(["Field"] if value == "Json" else [])]
    kinds = ["Topic", "Partition", "Key", "Header", "Time", *(["Field"] if value == "Json" else [])]
    item: Document = {"type": draw(st.sampled_from(kinds))}
    if item["type"] == "Time":
        item["source"] = draw(st.sampled_from(sources))
        item |= {"format": draw(_patterns)} | draw(_some(every=_durations, timezone=st.just("Europe/Berlin")))
    else:
        item |= draw(_some(**{"as": _names}))
    if item["type"] == "Header":
        item["name"] = draw(_words)
    if "Field" in {item["type"], item.get("source")} or (item["type"] == "Key" and key == "Json"):
        item["path"] = draw(_paths)
    return item


def _layouts(records: tuple[str, str], *, single: bool, of_sink: bool = False) -> st.SearchStrategy[Document]:
    styles = ["Offset", "Confluent", "Lenses", *([] if single else ["Upload"])]
    items = st.lists(_items(records, single=single), max_size=4, unique_by=_named)
    replacements = [{"pattern": "^", "replacement": "x_"}, {"pattern": "(a)", "replacement": "$1"}]
    names = {"topicReplacement": st.sampled_from(replacements)} if of_sink else {}
    return _some(
        **names,
        partitionBy=items.filter(lambda some: sum("year" in str(item) for item in some) < 2),
        hiveStyle=st.booleans(),
        onMissingValue=st.sampled_from(["Default", "Fail"]),
        objectName=st.sampled_from(styles),
        padding=_some(offset=st.integers(0, 19), partition=st.integers(0, 19)),
        suffix=st.sampled_from(["", "-a", "_v1"]),
        extension=st.sampled_from(["", ".json"]),
    )


_flushes = _some(
    records=st.integers(1, 10**9),
    bytes=_quantities,
    interval=_durations,
    aligned=_durations,
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    recordWindow=_durations,
)
_spark = _some(
    mode=st.sampled_from(["Local", "Cluster"]),
    driver=_some(
        cores=st.integers(1, 8),
        memory=_large,
        spill=_large,
        cpuRequest=st.sampled_from(["1", 2, "500m", "0.5"]),
    ),
    executor=_some(instances=st.integers(1, 8), podTemplate=st.just({"spec": {"x": [None, 1]}})),
    conf=st.sampled_from([{}, {"spark.sql.session.timeZone": "UTC"}]),
    serviceAccountAnnotations=_maps,
)
_destinations = _some(
    prefix=st.sampled_from(["", "raw", "a/b c", "été/x"]),
    statePrefix=st.sampled_from([".s3sink", "state/sinks"]),
    region=st.just("eu-central-1"),
    endpoint=st.sampled_from(["http://localhost:9000", "https://s3.example.com"]),
    pathStyle=st.booleans(),
    credentials=_references,
    caFrom=_references,
    encryption=st.sampled_from([{"type": "AES256"}, {"type": "KMS", "keyId": "k"}]),
    tags=_maps,
    maxConnections=st.integers(1, 1000),
    assumeRole=_some(externalId=st.just("42")).map(lambda more: {"arn": "arn:aws:iam::1:role/x", **more}),
    proxy=st.just({"url": "http://proxy:3128"}),
    timeouts=_some(connect=_durations, read=_durations),
    acl=st.sampled_from(["Private", "BucketOwnerFullControl"]),
    requesterPays=st.booleans(),
    partSize=_quantities,
)


@st.composite
def _routes(draw: st.DrawFn, topics: list[str], layouts: st.SearchStrategy[Document]) -> list[Document]:
    """Each topic on one of them, or none by name."""
    cut = draw(st.integers(0, len(topics)))
    parts = _some(
        flush=_flushes,
        destination=_some(prefix=st.sampled_from(["", "pay"]), bucket=st.just("vault")),
        layout=layouts,
        format=_formats_of_routes(),
    )
    named = [{"topics": some, **draw(parts)} for some in (topics[:cut], topics[cut:]) if some]
    return named + draw(st.lists(parts.map(lambda held: {"topicPattern": "a.*", **held}), max_size=1))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Any valid manifest, whether its features are built or not."""
    document = minimal()
    document["metadata"] |= draw(_some(namespace=_words, uid=st.text("abc0-"), generation=st.integers(0, 99)))
    topics = draw(_topics)
    source: Document = {"bootstrapServers": "kafka:9092"}
    source |= draw(st.sampled_from([{"topics": topics}, {"topicPattern": r"shop\..*"}]))
    source |= draw(
        _some(
            startingOffsets=_starts(topics),
            onUnroutedTopic=st.just("Default"),
            onDataLoss=st.sampled_from(["Fail", "Skip"]),
            isolation=st.sampled_from(["ReadCommitted", "ReadUncommitted"]),
            maxBytesPerSecond=_quantities,
            properties=st.dictionaries(st.sampled_from(["fetch.max.bytes", "client.id"]), _words),
            propertiesFrom=st.lists(_references, max_size=2),
            publishOffsetsTo=_words,
            key=_some(format=st.sampled_from(["String", "Bytes", "Json"])),
            value=_some(format=st.sampled_from(["String", "Bytes", "Json"])),
        )
    )
    records = (source.get("key", {}).get("format", "String"), source.get("value", {}).get("format", "Json"))
    single = draw(st.booleans())
    layouts = _layouts(records, single=single)
    retries = _some(max=st.integers(0, 99), backoff=st.just("1s"), maxBackoff=st.integers(1, 90).map("{}s".format))
    spec = document["spec"]
    spec |= draw(
        _some(
            state=st.sampled_from(["Running", "Paused", "Stopped"]),
            run=st.sampled_from(["Continuous", "Once"]),
            reset=st.fixed_dictionaries({"nonce": _words, "to": _starts(topics)}),
            layout=_layouts(records, single=single, of_sink=True),
            format=_formats(),
            flush=_flushes,
            delivery=st.sampled_from(["ExactlyOnce", "AtLeastOnce"]),
            nullValues=st.sampled_from(["Write", "Skip", "Fail", "Separate"]),
            transform=st.fixed_dictionaries({"where": st.sampled_from(["amount > 0", "_key = 'k'"])}),
            routes=_routes(topics, layouts),
            errors=_some(
                records=st.sampled_from(["Fail", "Skip"]),
                maxPerFlush=st.integers(0, 99),
                maxPercent=st.integers(0, 100),
                deadLetter=_some(prefix=st.just("_letters"), format=st.sampled_from(["Parquet", "Json"])).filter(
                    lambda letters: "prefix" in letters
                ),
                retries=retries,
            ),
            spark=_spark,
        )
    )
    if not single:
        for held in (spec, *spec.get("routes", ())):
            if held.get("format", {}).get("type") == "Bytes":
                held["format"]["type"] = "Text"
    if spec.get("run") == "Once" and draw(st.booleans()):
        source["endingOffsets"] = draw(_ends(topics))
    spec["source"] = source
    spec["destination"] |= draw(_destinations)
    return document
