"""Kafka client properties: what would run foreign code, leak a secret or break the protocol is refused."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.texts import has_user_info

_OWNED = {
    "bootstrap.servers": "spec.source.bootstrapServers",
    "isolation.level": "spec.source.isolation",
    "auto.offset.reset": "spec.source.startingOffsets and onDataLoss",
    "group.id": "spec.source.publishOffsetsTo",
    "group.instance.id": "",
    "group.protocol": "",
    "group.remote.assignor": "",
    "enable.auto.commit": "",
    "auto.commit.interval.ms": "",
    "allow.auto.create.topics": "",
}
_CODE = re.compile(
    r"(^|\.)class(es)?$|(^|\.)reporters$|(de)?serializer(\.|$)|^config\.providers|^security\.providers$"
    r"|^partition\.assignment\.strategy$|\.cmd$"
)
_SECRET = re.compile(
    r"jaas|password|passwd|passphrase|secret|token|credential|private\.?key|^ssl\.keystore\.key$|api\.?key"
)
_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def refused_property(key: str, from_secret: bool) -> str | None:
    """Why this Kafka property may not be set, or None. Secrets may hold passwords, never class names."""
    name = key.strip().lower()
    if not _NAME.fullmatch(key):
        return "must be a Kafka property's name: letters, digits, dots, hyphens and underscores"
    if name.startswith("kafka."):
        return f"must be the Java client's name, without Spark's prefix: write {key[len('kafka.') :]}"
    if name in _OWNED:
        instead = _OWNED[name]
        return f"is set by the sink; use {instead} instead" if instead else "is set by the sink itself; leave it out"
    if _CODE.search(name):
        return "would load code into the driver and is refused; leave it out"
    if not from_secret and _SECRET.search(name):
        return "may hold a secret; put it into a Secret and name that in spec.source.propertiesFrom"
    return None


def _name(key: str) -> str:
    refused = refused_property(key, from_secret=False)
    if refused:
        raise Refusal(refused, show=False)
    return key


def _value(value: str) -> str:
    if has_user_info(value):
        message = "must not hold a URL with a user or password; put it into a Secret named in propertiesFrom"
        raise Refusal(message, show=False)
    if "loginmodule" in value.lower():
        raise Refusal("must not hold JAAS; put sasl.jaas.config into a Secret named in propertiesFrom", show=False)
    return value


PropertyName = Annotated[str, AfterValidator(_name)]
PropertyValue = Annotated[str, AfterValidator(_value)]
