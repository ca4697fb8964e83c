"""Kafka Connect's converters: how keys and values are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from s3sink_api.formats import INPUT_FORMATS
from s3sink_job.convert.draft import Draft
from s3sink_job.convert.rules import flag

_CONNECT, _CONFLUENT = "org.apache.kafka.connect", "io.confluent.connect"
_GLUE = "com.amazonaws.services.schemaregistry.kafkaconnect"
JSON = f"{_CONNECT}.json.JsonConverter"
_FORMATS: Mapping[str, str] = {
    f"{_CONNECT}.storage.StringConverter": "String",
    f"{_CONNECT}.converters.ByteArrayConverter": "Bytes",
    JSON: "ConnectJson",
    f"{_CONFLUENT}.avro.AvroConverter": "Avro",
    f"{_CONFLUENT}.protobuf.ProtobufConverter": "Protobuf",
    f"{_CONFLUENT}.json.JsonSchemaConverter": "JsonSchema",
    f"{_GLUE}.AWSKafkaAvroConverter": "Avro",
    f"{_GLUE}.protobuf.ProtobufSchemaConverter": "Protobuf",
    f"{_GLUE}.jsonschema.JsonSchemaConverter": "JsonSchema",
    "io.apicurio.registry.utils.converter.AvroConverter": "Avro",
    "io.apicurio.registry.utils.converter.ExtJsonConverter": "JsonSchema",
    "io.apicurio.registry.utils.converter.ProtobufConverter": "Protobuf",
}
AS_CONFLUENT = "apicurio.registry.as-confluent"
_SAME = {
    "auto.register.schemas": "S3Sink only reads schemas",
    "schemas.cache.size": "S3Sink keeps every schema that it has read",
    "schemas.cache.config": "S3Sink keeps every schema that it has read",
    "use.latest.version": "records are decoded with the schema that they name",
    "key.subject.name.strategy": "records name their schema by its id",
    "value.subject.name.strategy": "records name their schema by its id",
    "basic.auth.credentials.source": "the login is in the Secret of the registry",
    "schema.registry.basic.auth.credentials.source": "the login is in the Secret of the registry",
    "enhanced.avro.schema.support": "names of records and enums stay as they are in the schema",
    "connect.meta.data": "no properties of Kafka Connect are added to schemas",
    "decimal.format": "decimals are written as JSON numbers",
    "replace.null.with.default": "a null stays a null",
    "schemaautoregistrationenabled": "S3Sink only reads schemas",
    "avrorecordtype": "records are decoded into columns",
    "dataformat": "the format is that of the converter",
    "registry.name": "records name their schema by its id",
    "schemaname": "records name their schema by its id",
    "jackson.avro.enabled": "records are decoded into columns",
    AS_CONFLUENT: "ids of 4 bytes in front of records are read",
    "apicurio.registry.auto-register": "S3Sink only reads schemas",
    "apicurio.registry.find-latest": "records are decoded with the schema that they name",
}
_GLUE_FIELDS = {
    "region": "region",
    "endpoint": "endpoint",
    "assumeRoleArn": "assumeRole.arn",
    "assumeRoleSessionName": "assumeRole.sessionName",
    "proxyUrl": "proxy.url",
}
_LOGINS = ("basic.auth.user.info", "schema.registry.basic.auth.user.info")
_URLS = ("schema.registry.url", "apicurio.registry.url")


def convert_decoding(draft: Draft, part: str) -> None:
    """`part` is key or value."""
    key = f"{part}.converter"
    options = {name[len(key) + 1 :]: name for name in draft.settings if name.startswith(f"{key}.")}
    if not draft.has(key):
        _no_converter(draft, part, options)
        return
    kind = draft.text(key).strip()
    if kind not in _FORMATS:
        wanted = "String" if part == "key" else "Json"
        draft.lost(key, f"S3Sink has no input format like this class; {wanted} is used. See docs/schemas.md")
        for name in options.values():
            draft.lost(name, f"belongs to {key}, which was not carried over")
        return
    format = _FORMATS[kind]
    if kind == JSON:
        format = _json_format(draft, options)
    if INPUT_FORMATS[format].registry and not _registry(draft, part, kind, options):  # type: ignore[index]
        draft.lost(key, f"{format} needs the URL of the registry, which is not in the configuration; Bytes is used")
        format = "Bytes"
    draft.carry(key, f"source.{part}.format", format)
    _options(draft, key, options)


def _no_converter(draft: Draft, part: str, options: Mapping[str, str]) -> None:
    default = "String" if part == "key" else "Json"
    if part == "value" and not draft.has("input.data.format"):
        draft.note(
            f"{part}.converter is not in the configuration, so that of the Connect worker holds there."
            f" The manifest has the default, source.{part}.format: {default}; change it if the worker's is another."
        )
    for name in options.values():
        draft.lost(name, f"has no {part}.converter beside it; set spec.source.{part} as the Connect worker has it")


def _json_format(draft: Draft, options: Mapping[str, str]) -> str:
    if "schemas.enable" not in options:
        return "ConnectJson"
    name = options["schemas.enable"]
    try:
        schemas = flag(draft.text(name))
    except ValueError as error:
        draft.lost(name, f"the value {error}; true is the default")
        return "ConnectJson"
    draft.exact(name, "records have schema and payload" if schemas else "records are plain JSON")
    return "ConnectJson" if schemas else "Json"


def _registry(draft: Draft, part: str, kind: str, options: Mapping[str, str]) -> bool:
    """Whether the registry is known."""
    path = f"source.{part}.schemaRegistry"
    if kind.startswith(_GLUE):
        _glue(draft, path, options)
        return True
    name = next((options[option] for option in _URLS if option in options), None)
    if name is None or not draft.has(name):
        return False
    first, *others = draft.text(name).split(",")
    url, login = _without_login(first.strip())
    difference = "several registries there, the first one here" if others else ""
    if "apicurio" in name:
        difference = "S3Sink uses the dialect of Confluent: the path must end in /apis/ccompat/v7"
    if login:
        difference = f"the login in the URL goes into the Secret {draft.secret_name('registry')}"
    draft.carry(name, f"{path}.url", url, difference)
    if login:
        _login(draft, name, path, "registry")
    for option in _LOGINS:
        if option in options:
            _login(draft, options[option], path, "registry")
    return True


def _glue(draft: Draft, path: str, options: Mapping[str, str]) -> None:
    draft.put(f"{path}.type", "Glue")
    for option, field in _GLUE_FIELDS.items():
        name = options.get(option, "")
        if not draft.has(name):
            continue
        if option == "assumeRoleSessionName" and not draft.has(options.get("assumeRoleArn", "")):
            draft.exact(name, "has no meaning without assumeRoleArn")
            continue
        value, login = _without_login(draft.text(name))
        difference = f"the login in the URL goes into the Secret {draft.secret_name('glue-proxy')}" if login else ""
        draft.carry(name, f"{path}.{field}", value, difference)
        if login:
            _login(draft, name, f"{path}.proxy", "glue-proxy")


def _login(draft: Draft, name: str, path: str, secret: str) -> None:
    draft.put(f"{path}.credentialsFrom", {"secretRef": {"name": draft.secret_name(secret)}})
    for secret_key in ("username", "password"):
        draft.secret(name, secret, secret_key, f"{path}.credentialsFrom")


def _without_login(url: str) -> tuple[str, bool]:
    try:
        parts = urlsplit(url)
    except ValueError:
        # The manifest's parser refuses it, and its value is not shown.
        return url, False
    if "@" not in parts.netloc:
        return url, False
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), True


def _options(draft: Draft, key: str, options: Mapping[str, str]) -> None:
    for option, name in options.items():
        if draft.reported(name):
            continue
        if option == "schemas.enable":
            draft.exact(name, "has no meaning for this converter")
        elif option.lower() == AS_CONFLUENT and draft.text(name).strip().lower() != "true":
            draft.lost(name, "ids of 8 bytes in front of records are not read; see docs/schemas.md#ids-in-headers")
        elif option.lower() in _SAME:
            draft.exact(name, _SAME[option.lower()])
        elif "ssl." in option:
            draft.lost(name, "certificates are Secrets in PEM: set caFrom and certFrom of the schemaRegistry")
        else:
            draft.lost(name, f"is no option of {key} that s3sink convert knows; see docs/schemas.md")
