"""Properties of Kafka's Java clients, from the resource and its mounted secrets.

Properties only contain the path of a secret. The clients of driver and executors read the mounted files themselves, so
that Spark never sends a secret to a task.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path

from s3sink_api.spec import OAUTH_URLS, TOKEN_URL, Source, refused_property
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets
from s3sink_job.kafka.jaas import DISALLOWED_MODULES, LoginRefused, login_of

ISOLATION = {"ReadCommitted": "read_committed", "ReadUncommitted": "read_uncommitted"}
PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
_NAME = "mounted"
_SETTINGS = f"config.providers.{_NAME}"
_VERSION = f"{_SETTINGS}.param.version"
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_KEY = os.urandom(32)
"""Known to this process only, so that nobody can guess a password by comparing versions."""


def connection(source: Source, secrets: Secrets) -> dict[str, str]:
    """Common properties of admin client and consumers. They change when a secret changes."""
    properties = dict(source.properties)
    if TOKEN_URL in properties:
        # The spec may not set classes. Without this one Kafka's client would invent tokens.
        properties["sasl.login.callback.handler.class"] = _OAUTH_HANDLER
    content: dict[str, str] = {}
    folder = str(Path(secrets.folder).absolute())
    for reference in source.properties_from:
        name = reference.secret_ref.name
        for key, value in secrets.read(name).items():
            _check(name, key, value)
            content[key] = value
            properties[key] = f"${{{_NAME}:{folder}/{name}:{key}}}"
    if content:
        properties |= _provider(folder, content)
    return {**properties, "bootstrap.servers": source.bootstrap_servers}


def consumer_group(group: str, connection: Mapping[str, str]) -> str:
    """Spark caches consumers by group. Changed secrets need new consumers, so the group contains their version."""
    return f"{group}.{connection[_VERSION]}" if _VERSION in connection else group


def jvm_options(source: Source) -> str:
    """Restrictions of Kafka's clients, whatever properties say. For the command line of every JVM that uses them."""
    urls = [source.properties[name] for name in OAUTH_URLS if name in source.properties]
    options = {
        "org.apache.kafka.disallowed.login.modules": ",".join(DISALLOWED_MODULES),
        # Complete URLs. The property must be set even if it is empty: then Kafka allows none.
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": ",".join(urls),
        "org.apache.kafka.automatic.config.providers": PROVIDER,
    }
    return " ".join(f"-D{name}={value}" for name, value in options.items())


def _check(secret: str, key: str, value: str) -> None:
    refusal = refused_property(key, from_secret=True)
    if refusal is None and "jaas" in key.lower():
        try:
            login_of(value)
        except LoginRefused as error:
            refusal = str(error)
    if refusal is not None:
        raise FinalError(f"Secret {secret!r}, key {key!r}: {refusal}", reason="PropertyRefused")


def _provider(folder: str, content: Mapping[str, str]) -> dict[str, str]:
    if re.search("[:,}]", folder):
        raise FinalError(
            f"the folder of the secrets, {folder}, must not contain : , or }}: Kafka's client cannot read it",
            reason="SecretsFolder",
        )
    text = "\0".join(f"{key}\0{value}" for key, value in sorted(content.items()))
    return {
        "config.providers": _NAME,
        f"{_SETTINGS}.class": PROVIDER,
        f"{_SETTINGS}.param.allowed.paths": folder,
        # Ignored by the provider. It changes with the content of the files.
        _VERSION: hmac.digest(_KEY, text.encode(), "sha256").hex()[:12],
    }
