"""AWS Glue Schema Registry and STS as moto has them, and answers of those that deny or misbehave."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from uuid import uuid4

import boto3

from s3sink_api.spec import SchemaRegistry, SecretRef, SecretSource
from s3sink_job.decode.writer_schemas import SchemaId
from tests.decode.registry_answers import Answer, Respond
from tools.parts.proxy import Request
from tools.parts.s3 import Moto

KEYS = {"AWS_ACCESS_KEY_ID": b"AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": b"wJalrXUtnFEMI-secret"}
REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/schemas"
SOME = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
"""A version of a schema."""


def registry_at(endpoint: str) -> SchemaRegistry:
    login = SecretSource(secret_ref=SecretRef(name="aws"))
    return SchemaRegistry(type="Glue", region=REGION, endpoint=endpoint, credentials_from=login)


def version(number: str) -> SchemaId:
    return SchemaId("Glue schema version", number)


def glue_of(moto: Moto) -> Any:
    login = {name.lower(): value.decode() for name, value in KEYS.items()}
    return boto3.client("glue", endpoint_url=moto.endpoint, region_name=REGION, **login)  # type: ignore[call-overload]


def newer_version(moto: Moto, schema: str, text: str) -> str:
    name = {"RegistryName": "default-registry", "SchemaName": schema}
    return str(glue_of(moto).register_schema_version(SchemaId=name, SchemaDefinition=text)["SchemaVersionId"])


def registered(moto: Moto, kind: str, text: str, schema: str = "orders", registry: str | None = None) -> str:
    glue, name = glue_of(moto), registry or f"registry-{uuid4()}"
    if name not in [one["RegistryName"] for one in glue.list_registries()["Registries"]]:
        glue.create_registry(RegistryName=name)
    found = glue.create_schema(
        RegistryId={"RegistryName": name},
        SchemaName=schema,
        DataFormat=kind,
        Compatibility="NONE",
        SchemaDefinition=text,
    )
    return str(found["SchemaVersionId"])


def error(code: str, status: int = 400) -> Answer:
    return Answer(status, json.dumps({"__type": code, "Message": "no, because"}).encode())


def always(answer: Answer) -> Respond:
    return lambda *_: answer


def refusal_of_sts(code: str) -> Answer:
    said = f"User: arn:aws:iam::1:user/sink is not authorized to perform: sts:AssumeRole on resource: {ROLE}"
    space = "https://sts.amazonaws.com/doc/2011-06-15/"
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{said}</Message></Error>"
    return Answer(403, f'<ErrorResponse xmlns="{space}">{error}</ErrorResponse>'.encode())


def sessions(moto: Moto, name: str) -> list[dict[str, Any]]:
    """What moto's STS was asked for, with the credentials that it gave."""
    with urllib.request.urlopen(f"{moto.endpoint}/moto-api/data.json") as answer:
        roles: list[dict[str, Any]] = json.load(answer)["sts"]["AssumedRole"]
    return [role for role in roles if role["session_name"] == name]


def credentials(request: Request) -> tuple[str, str]:
    """The access key, and the token."""
    signed = request.headers["authorization"].partition("Credential=")[2]
    return signed.partition("/")[0], request.headers.get("x-amz-security-token", "")
