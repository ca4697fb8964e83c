"""Credentials of AWS, and of services with the same ones, from a Secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from s3sink_api.spec import SecretSource
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets


class AwsKeys(NamedTuple):
    """Empty for the default chain: environment, role of the pod, role of the machine."""

    access_key: str = ""
    secret_key: str = ""
    token: str = ""

    @property
    def client_options(self) -> dict[str, Any]:
        """For boto3."""
        if not self.access_key:
            return {}
        options = {"aws_access_key_id": self.access_key, "aws_secret_access_key": self.secret_key}
        return options | ({"aws_session_token": self.token} if self.token else {})


def aws_keys(source: SecretSource | None, secrets: Secrets) -> AwsKeys:
    if source is None:
        return AwsKeys()
    name = source.secret_ref.name
    content = secrets.read(name)
    try:
        keys = content["AWS_ACCESS_KEY_ID"], content["AWS_SECRET_ACCESS_KEY"]
    except KeyError as missing:
        raise FinalError(
            f"Secret {name!r} has no key {missing}: it needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            reason="SecretKeyMissing",
        ) from missing
    return AwsKeys(*keys, content.get("AWS_SESSION_TOKEN", ""))


def ca_file(source: SecretSource | None, secrets: Secrets) -> str | None:
    """The file with the CA, which has to be there. None for the CAs of the image."""
    if source is None:
        return None
    name = source.secret_ref.name
    secrets.key(name, "ca.crt")
    return str(Path(secrets.folder) / name / "ca.crt")
