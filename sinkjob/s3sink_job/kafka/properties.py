"""Kafka properties in the Java dialect, from the resource and its mounted secrets."""

from __future__ import annotations

from s3sink_job.errors import FinalError
from s3sink_job.secrets import Secrets
from s3sink_job.spec import Source, refused_property

ISOLATION = {"ReadCommitted": "read_committed", "ReadUncommitted": "read_uncommitted"}


def connection(source: Source, secrets: Secrets) -> dict[str, str]:
    """How to reach the brokers: what admin client and consumers share. May hold secrets: never log it."""
    properties = dict(source.properties)
    for reference in source.properties_from:
        name = reference.secret_ref.name
        for key, value in secrets.read(name).items():
            if (refusal := refused_property(key, from_secret=True)) is not None:
                raise FinalError(f"Secret {name!r}, key {key!r}: {refusal}", reason="PropertyRefused")
            properties[key] = value
    return {**properties, "bootstrap.servers": source.bootstrap_servers}
