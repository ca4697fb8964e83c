"""Kafka client properties: what would run foreign code, leak a secret or break the protocol is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from s3sink_job.spec import patterns
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
# Addresses for OAuth are no secrets, and Java is told at its start which ones Kafka's client may call.
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105
OAUTH_URLS = (TOKEN_URL, "sasl.oauthbearer.jwks.endpoint.url")
OAUTH_URL = "must be an https:// URL without user, query or fragment"
SECRET_PROPERTIES = (
    r".*(jaas|password|passwd|passphrase|secret|credential|private\.?key|api\.?key).*|ssl\.keystore\.key"
    r"|.*token([^.].*|\.([^e].*|e([^n].*)?)?)?",
    "may hold a secret; put it into a Secret and name that in spec.source.propertiesFrom",
)
_ADDRESSES = (
    r"(.*\.)?sasl\.oauthbearer\.(token|jwks)\.endpoint\.url",
    "is an address that the sink may call; name it in spec.source.properties, where people see it",
)


def refused_property(key: str, from_secret: bool) -> str | None:
    """Why this Kafka property may not be set, or None. Secrets may hold passwords, never class names."""
    if not re.fullmatch(PROPERTY, key, re.ASCII):
        return "must be a Kafka property's name: letters, digits, dots, hyphens and underscores"
    name = key.lower()
    if re.fullmatch(PREFIXED, name):
        return f"must be the Java client's name, without Spark's prefix: write {key[len('kafka.') :]}"
    refused = (*REFUSED_PROPERTIES, _ADDRESSES if from_secret else SECRET_PROPERTIES)
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
    if "${" in value:
        raise Refusal("must not hold ${, which Kafka's client would replace", show=False)
    return value


def https_only(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The addresses that Kafka's client calls for tokens: never a file, never without TLS."""
    for name in OAUTH_URLS:
        if name in properties and not re.fullmatch(patterns.HTTPS_URL, properties[name], re.ASCII):
            raise Refusal(OAUTH_URL, at=(name,), show=False)
    return properties


PropertyName = Annotated[str, AfterValidator(_name)]
# Certificates in PEM are long.
PropertyValue = Annotated[str, Field(max_length=16_384), AfterValidator(_value)]
