"""Finds the configurations in a document: which system each is of, and its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from s3sink_job.convert.bad_input import BadInput, Place
from s3sink_job.convert.documents import flattened
from s3sink_job.convert.draft import plain

System = Literal["lenses", "confluent", "aiven", "redpanda", "quix", "airbyte"]
_CLASSES: Mapping[str, System] = {
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector": "lenses",
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnectorDeprecated": "lenses",
    "com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector": "lenses",
    "io.confluent.connect.s3.S3SinkConnector": "confluent",
    "S3SinkConnector": "confluent",
    "S3_SINK": "confluent",
    "S3SinkV2": "confluent",
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector": "aiven",
}
_OF_ONE_SYSTEM: Mapping[System, tuple[str, ...]] = {
    "lenses": ("connect.s3.",),
    "confluent": ("s3.bucket.name",),
    "aiven": ("aws.s3.bucket.name", "aws_s3_bucket"),
    "redpanda": ("output.aws_s3.",),
    "quix": ("FileSink.", "destination.S3Destination."),
    "airbyte": (
        "s3_bucket_name",
        "configuration.s3_bucket_name",
        "connectionConfiguration.s3_bucket_name",
        "connection_configuration.s3_bucket_name",
    ),
}
"""Keys, or beginnings of keys, that no other system has."""
_LENSES_SOURCE = "connect.s3.source."


@dataclass(frozen=True)
class Configuration:
    system: System
    name: str
    settings: Mapping[str, Any]
    written_as: Mapping[str, str] = field(default_factory=dict)
    """Keys that the input has under another name."""
    state: str = ""
    """What the sink is to do at first: Paused, Stopped, or nothing said."""
    around: Mapping[str, str] = field(default_factory=dict)
    """What is around the configuration, such as the tasks in an answer of a worker, and what became of it."""


@dataclass(frozen=True)
class Found:
    configurations: tuple[Configuration, ...]
    bootstrap_servers: str = ""
    left_alone: tuple[str, ...] = ()
    """Other documents and connectors, in words."""


def find_configurations(documents: Iterable[Any], name: str) -> Found:
    found: list[Configuration] = []
    servers = ""
    left_alone: list[str] = []
    for number, document in enumerate(documents, start=1):
        place = Place(name if number == 1 else f"{name}, document {number}")
        if not isinstance(document, Mapping):
            raise BadInput(place, _NOT_A_MAPPING if isinstance(document, list) else "is no configuration")
        kind = document.get("kind")
        if kind == "List" and isinstance(document.get("items"), list):
            inner = find_configurations(document["items"], name)
            found += inner.configurations
            servers, left_alone = servers or inner.bootstrap_servers, [*left_alone, *inner.left_alone]
        elif kind == "KafkaConnector":
            found.append(_strimzi(document, place))
        elif kind == "KafkaConnect":
            servers = plain(_at(document, "spec", "bootstrapServers"))
            left_alone.append(f"KafkaConnect {plain(_at(document, 'metadata', 'name'))}")
        elif isinstance(kind, str) and "apiVersion" in document:
            left_alone.append(f"{kind} {plain(_at(document, 'metadata', 'name'))}")
        else:
            inner = _plain_document(document, place)
            found += inner.configurations
            left_alone += inner.left_alone
    _check(found, left_alone, name)
    return Found(tuple(found), servers, tuple(left_alone))


_NOT_A_MAPPING = "is a list; of a Connect worker take the answer to GET /connectors?expand=info"


def _check(found: list[Configuration], left_alone: list[str], name: str) -> None:
    if not found:
        others = f"; there is {', '.join(left_alone)}" if left_alone else ""
        raise BadInput(Place(name), f"has no configuration of an S3 sink{others}")
    names = [configuration.name for configuration in found]
    for one in names:
        if names.count(one) > 1:
            raise BadInput(Place(name), f"has two configurations with the name {one!r}; give each its own")


def _plain_document(document: Mapping[str, Any], place: Place) -> Found:
    values = [value for value in document.values() if isinstance(value, Mapping)]
    if values and len(values) == len(document) and all("info" in value or "status" in value for value in values):
        return _worker(document, place)
    if isinstance(document.get("config"), Mapping) and "input" not in document:
        return Found((_answer(document, place),))
    return Found((_configuration(*_present_names(flattened(document)), place),))


def _present_names(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Redpanda Connect had other names for its parts. Returns the keys by their names of today, and the old names."""
    found, written_as = {}, {}
    for key, value in settings.items():
        name = key.replace("output.s3.", "output.aws_s3.", 1) if key.startswith("output.s3.") else key
        name = name.replace("input.kafka_balanced.", "input.kafka.", 1)
        found[name] = value
        if name != key:
            written_as[name] = key
    return found, written_as


def _worker(document: Mapping[str, Any], place: Place) -> Found:
    """The answer to `GET /connectors?expand=info`: all connectors of a worker."""
    found, left_alone = [], []
    for name, value in document.items():
        info = value.get("info")
        if not isinstance(info, Mapping) or not isinstance(info.get("config"), Mapping):
            raise BadInput(place, f"the answer has no info about {name}; take GET /connectors?expand=info")
        kind = plain(info["config"].get("connector.class"))
        if kind in _CLASSES:
            beside = {key: part for key, part in value.items() if key != "info"}
            found.append(_answer({"name": name, **info, **beside}, place))
        else:
            left_alone.append(f"connector {name} of class {kind or 'unknown'}")
    return Found(tuple(found), left_alone=tuple(left_alone))


def _answer(document: Mapping[str, Any], place: Place) -> Configuration:
    """The answer to `GET /connectors/<name>`, or the body of a `POST /connectors`."""
    settings = flattened(dict(document["config"]))
    around = {
        key: "is around the configuration; nothing to carry over" for key in document if key not in {"config", "name"}
    }
    if plain(document.get("type")).lower() == "source":
        raise BadInput(place, _SOURCE)
    name = plain(document.get("name"))
    written_as: dict[str, str] = {}
    if "name" in document:
        if "name" in settings:
            around["name (beside config)"] = "is the same as name in config"
        else:
            settings = {"name": name, **settings}
            written_as = {"name": "name (beside config)"}
    return replace(_configuration(settings, written_as, place), around=around)


def _strimzi(document: Mapping[str, Any], place: Place) -> Configuration:
    spec = document.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("config"), Mapping):
        raise BadInput(place, "KafkaConnector has no spec.config")
    settings = flattened(dict(spec["config"]))
    names = {
        "name": ("metadata.name", _at(document, "metadata", "name")),
        "connector.class": ("spec.class", spec.get("class")),
    }
    if "tasksMax" in spec:
        names["tasks.max"] = ("spec.tasksMax", spec["tasksMax"])
    written_as = {}
    for key, (path, value) in names.items():
        if key not in settings and value is not None:
            settings[key] = value
            written_as[key] = path
    rest = flattened({"metadata": document.get("metadata"), "spec": {**spec, "config": None}})
    whole = dict.fromkeys(document, "is around the configuration; nothing to carry over")
    around = {key: text for key, text in whole.items() if key not in {"metadata", "spec"}}
    around |= {
        path: _STRIMZI.get(path, "is a setting of Strimzi")
        for path in rest
        if path not in {*written_as.values(), "spec.config"}
    }
    wanted = "paused" if plain(spec.get("pause")) == "true" else plain(spec.get("state")).lower()
    state = {"paused": "Paused", "stopped": "Stopped"}.get(wanted, "")
    return replace(_configuration(settings, written_as, place), around=around, state=state)


_STRIMZI = {
    "metadata.namespace": "apply the manifest in the namespace of your choice",
    "spec.state": "spec.state",
    "spec.pause": "spec.state",
    "spec.autoRestart.enabled": "S3Sink restarts by itself",
}
_SOURCE = "is a source connector, which writes to Kafka; S3Sink reads from Kafka"


def _configuration(settings: Mapping[str, Any], written_as: Mapping[str, str], place: Place) -> Configuration:
    system = _system(settings, place)
    name = plain(settings.get("name")) or system
    return Configuration(system, name, settings, written_as)


def _system(settings: Mapping[str, Any], place: Place) -> System:
    found = [system for system, keys in _OF_ONE_SYSTEM.items() if any(key.startswith(keys) for key in settings)]
    kind = plain(settings.get("connector.class"))
    if kind:
        if "source" in kind.lower():
            raise BadInput(place, f"connector.class {kind} {_SOURCE}")
        if kind not in _CLASSES:
            known = ", ".join(name for name in _CLASSES if "." in name and "Deprecated" not in name)
            raise BadInput(place, f"connector.class {kind} is no S3 sink that s3sink convert knows; it knows {known}")
        others = [system for system in found if system != _CLASSES[kind]]
        found = [_CLASSES[kind], *others]
    if any(key.startswith(_LENSES_SOURCE) for key in settings) and not kind:
        raise BadInput(place, _SOURCE)
    if len(found) > 1:
        examples = [next(key for key in settings if key.startswith(_OF_ONE_SYSTEM[system])) for system in found[1:]]
        text = f"has keys of several systems: {', '.join(found)} ({', '.join(examples)}); convert them one by one"
        raise BadInput(place, text)
    if not found:
        raise BadInput(place, _UNKNOWN)
    return found[0]


_UNKNOWN = (
    "is no configuration that s3sink convert knows: it reads connectors of Lenses, Confluent and Aiven, pipelines of"
    " Redpanda Connect with a Kafka input and an aws_s3 output, Quix' FileSink and Airbyte's S3 destination"
)


def _at(document: Any, *names: str) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document
