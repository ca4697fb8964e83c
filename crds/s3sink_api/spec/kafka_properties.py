"""Kafka client properties: those that load code, may hold a secret or break the delivery guarantee are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from s3sink_api.cel import Cel, Rule, fits, forbidden, matches, refused_names
from s3sink_api.spec import regexes
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.text_types import has_user_info, no_user_info

PROPERTY = r"[A-Za-z0-9._-]{1,256}"
PREFIXED = r"kafka\..*"
_NAME_MESSAGE = "must be a Kafka property's name: letters, digits, dots, hyphens and underscores"
_PREFIXED_MESSAGE = "must be the Java client's name, without Spark's prefix"
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
_OAUTH_URL_MESSAGE = "must be an https:// URL without user, query or fragment"
SECRET_PROPERTIES = (
    r".*(jaas|password|passwd|passphrase|secret|credential|private\.?key|api\.?key).*|ssl\.keystore\.key"
    r"|.*token([^.].*|\.([^e].*|e([^n].*)?)?)?",
    "may hold a secret; put it into a Secret and name that in spec.source.propertiesFrom",
)
_ADDRESSES = (
    r"(.*\.)?sasl\.oauthbearer\.(token|jwks)\.endpoint\.url",
    "is an address that the sink connects to; set it in spec.source.properties, where it can be reviewed",
)


def refused_property(key: str, from_secret: bool) -> str | None:
    """Why this Kafka property must not be set, or None. In a Secret passwords are allowed, class names are not."""
    if not re.fullmatch(PROPERTY, key, re.ASCII):
        return _NAME_MESSAGE
    name = key.lower()
    if re.fullmatch(PREFIXED, name):
        return f"{_PREFIXED_MESSAGE}: write {key[len('kafka.') :]}"
    refused = (*REFUSED_PROPERTIES, _ADDRESSES if from_secret else SECRET_PROPERTIES)
    return next((why for pattern, why in refused if re.fullmatch(pattern, name)), None)


def _name(key: str) -> str:
    refused = refused_property(key, from_secret=False)
    if refused:
        raise Refusal(refused, show=False)
    return key


PropertyName = Annotated[
    str,
    after(
        _name,
        matches(PROPERTY, _NAME_MESSAGE),
        *refused_names([(PREFIXED, _PREFIXED_MESSAGE)]),
        *refused_names((*REFUSED_PROPERTIES, SECRET_PROPERTIES)),
    ),
]
_LOGIN_MESSAGE = "must not contain a URL with a user or password; put it into a Secret named in propertiesFrom"
_REFERENCE_MESSAGE = "must not contain ${, which Kafka's client would replace"


def _value(value: str) -> str:
    if has_user_info(value):
        raise Refusal(_LOGIN_MESSAGE, show=False)
    if "loginmodule" in value.lower():
        raise Refusal("must not contain JAAS; put sasl.jaas.config into a Secret named in propertiesFrom", show=False)
    if "${" in value:
        raise Refusal(_REFERENCE_MESSAGE, show=False)
    return value


# Certificates in PEM are long.
PropertyValue = Annotated[
    str,
    Field(max_length=16_384),
    after(
        _value,
        no_user_info(_LOGIN_MESSAGE),
        Cel(
            lambda it: f"!{it}.lowerAscii().contains('loginmodule')",
            "must not contain JAAS; put it into a Secret named in propertiesFrom",
            "FieldValueForbidden",
        ),
        Cel(lambda it: f"!{it}.contains('${{')", _REFERENCE_MESSAGE, "FieldValueForbidden"),
    ),
]


def https_only(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Kafka's client gets its tokens over https only: from no file, and not without TLS."""
    for name in OAUTH_URLS:
        if name in properties and not re.fullmatch(regexes.HTTPS_URL, properties[name], re.ASCII):
            raise Refusal(_OAUTH_URL_MESSAGE, at=(name,), show=False)
    return properties


HTTPS_ONLY_CEL: tuple[Rule, ...] = tuple(
    forbidden(
        f"!has(self.properties) || !('{name}' in self.properties)"
        " || " + fits(f"self.properties['{name}']", regexes.HTTPS_URL),
        f"{name} {_OAUTH_URL_MESSAGE}",
        at=".properties",
    )
    for name in OAUTH_URLS
)
