"""Kafka client properties: what would run foreign code, leak a secret or break the protocol is refused."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.texts import has_user_info

PROPERTY = r"[A-Za-z0-9._-]{1,256}"
PREFIXED = r"kafka\..*"
_OURS = "is set by the sink itself; leave it out"
_CODE = (
    r"(.*\.)?class(es)?|(.*\.)?reporters|.*serializer(\..*)?|config\.providers.*|security\.providers"
    r"|partition\.assignment\.strategy|.*\.cmd"
)
# Matched against the name in lower case, here and by the API server.
REFUSED_PROPERTIES: tuple[tuple[str, str], ...] = (
    (r"bootstrap\.servers", "is set by the sink; use spec.source.bootstrapServers instead"),
    (r"isolation\.level", "is set by the sink; use spec.source.isolation instead"),
    (r"auto\.offset\.reset", "is set by the sink; use spec.source.startingOffsets and onDataLoss instead"),
    (r"group\.id", "is set by the sink; use spec.source.publishOffsetsTo instead"),
    (r"group\.(instance\.id|protocol|remote\.assignor)|allow\.auto\.create\.topics", _OURS),
    (r"enable\.auto\.commit|auto\.commit\.interval\.ms", _OURS),
    (_CODE, "would load code into the driver and is refused; leave it out"),
)
SECRET_PROPERTIES = (
    r".*(jaas|password|passwd|passphrase|secret|token|credential|private\.?key|api\.?key).*|ssl\.keystore\.key",
    "may hold a secret; put it into a Secret and name that in spec.source.propertiesFrom",
)


def refused_property(key: str, from_secret: bool) -> str | None:
    """Why this Kafka property may not be set, or None. Secrets may hold passwords, never class names."""
    if not re.fullmatch(PROPERTY, key, re.ASCII):
        return "must be a Kafka property's name: letters, digits, dots, hyphens and underscores"
    name = key.lower()
    if re.fullmatch(PREFIXED, name):
        return f"must be the Java client's name, without Spark's prefix: write {key[len('kafka.') :]}"
    refused = REFUSED_PROPERTIES if from_secret else (*REFUSED_PROPERTIES, SECRET_PROPERTIES)
    return next((why for pattern, why in refused if re.fullmatch(pattern, name)), None)


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
# Certificates in PEM are long.
PropertyValue = Annotated[str, Field(max_length=16_384), AfterValidator(_value)]
