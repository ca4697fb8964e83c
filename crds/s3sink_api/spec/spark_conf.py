"""Spark settings: those that could take over the pod or break the delivery guarantee are refused."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from s3sink_api.cel import matches, refused_names
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.text_types import has_user_info, no_user_info

_POD = "could take over the pod and is refused; leave it out"
_CODE = "would load code into Spark and is refused; leave it out"
_OURS = "is set by the sink itself; leave it out"
_SECRET = "may hold a secret and is refused; leave it out"  # noqa: S105

# Matched against the key in lower case, here and by the API server.
REFUSED_SETTINGS: tuple[tuple[str, str], ...] = (
    (r"spark\.driver\..*", "is set from spec.spark.driver; use its fields instead"),
    (r"spark\.(kubernetes|yarn|mesos|deploy|worker|history)\..*", _POD),
    (r".*\.pod\.template.*|.*podtemplate.*", _POD),
    (r"spark\.executorenv\..*|.*\.discoveryscript|spark\.r\..*|spark\.pyspark\..*", _POD),
    (r"spark\.python\..*(daemon|module).*", _CODE),
    (r"spark\.(jars|files|archives|plugins)(\..*)?|.*\.pyfiles", _CODE),
    (r".*javaoptions|spark\.executor\.extra.*|.*extra(listeners|classpath|librarypath)", _CODE),
    (r".*(\.extensions|\.filters|listeners|\.catalogimplementation)|spark\.sql\.(catalog|hive)\..*", _CODE),
    (r"spark\.(serializer|closure\.serializer|kryo\..*|shuffle\.manager|shuffle\.sort\.io.*)", _CODE),
    (r".*\.(class|classes|impl|registrator|initializer)|spark\.(hadoop|metrics|connect)\..*", _CODE),
    (r".*(password|passphrase|secret|token|credential|private.?key|access.?key).*", _SECRET),
    (r"spark\.(master|home|local\.dir|submit\..*|app\..*|redaction\..*|sql\.redaction\..*)", _OURS),
    (r"spark\.(authenticate(\..*)?|(network\.crypto|io\.encryption|io\.crypto|ssl)\..*)", _OURS),
    (r"spark\.(speculation(\..*)?|sql\.adaptive\.enabled|logconf|ui\..*|eventlog\..*)", _OURS),
)
_COMPILED = tuple((re.compile(pattern), why) for pattern, why in REFUSED_SETTINGS)
_NAME_MESSAGE = "must be the name of a Spark setting, which starts with spark."
_LOGIN_MESSAGE = "must not contain a URL with a user or password"
SETTING = r"spark\.[A-Za-z0-9._-]{1,250}"


def refused_conf(key: str) -> str | None:
    """Why this Spark setting must not be set, or None."""
    if not re.fullmatch(SETTING, key, re.ASCII):
        return _NAME_MESSAGE
    return next((why for pattern, why in _COMPILED if pattern.fullmatch(key.lower())), None)


def _name(key: str) -> str:
    refused = refused_conf(key)
    if refused:
        raise Refusal(refused, show=False)
    return key


def _value(value: str) -> str:
    if has_user_info(value):
        raise Refusal(_LOGIN_MESSAGE, show=False)
    return value


ConfName = Annotated[str, after(_name, matches(SETTING, _NAME_MESSAGE), *refused_names(REFUSED_SETTINGS))]
ConfValue = Annotated[str, Field(max_length=4096), after(_value, no_user_info(_LOGIN_MESSAGE))]
