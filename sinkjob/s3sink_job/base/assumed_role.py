"""Credentials of a role that the sink assumes. boto3 renews them before they expire, without a restart."""

from __future__ import annotations

from collections.abc import Callable

from botocore.client import BaseClient
from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
    create_assume_role_refresher,
)
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from botocore.session import Session

from s3sink_job.base.aws_access import DEFAULT_REGION, AwsAccess
from s3sink_job.base.aws_errors import RoleError


class _RoleProvider(CredentialProvider):
    METHOD = "assume-role"
    CANONICAL_NAME = "AssumeRole"

    def __init__(self, access: AwsAccess) -> None:
        super().__init__()
        self._access = access

    def load(self) -> Credentials:
        """Asks for nothing yet: the first request of the service does."""
        return DeferredRefreshableCredentials(
            refresh_using=_refresher(self._access),
            method=self.METHOD,
        )


def _refresher(access: AwsAccess) -> Callable[[], dict[str, str]]:
    assume = create_assume_role_refresher(_sts(access), _request(access))

    def refresh() -> dict[str, str]:
        try:
            found: dict[str, str] = assume()
        except (ClientError, ResponseParserError) as error:
            raise RoleError(error) from error
        return found

    return refresh


def _sts(access: AwsAccess) -> BaseClient:
    role = access.role
    options = access.keys.client_options
    if role is not None and role.endpoint:
        options["endpoint_url"] = role.endpoint
        if access.ca is not None:
            options["verify"] = access.ca
    session = Session()
    region = access.region or session.get_config_variable("region") or DEFAULT_REGION
    return session.create_client("sts", region_name=region, config=access.config(), **options)


def _request(access: AwsAccess) -> dict[str, str]:
    role = access.role
    if role is None:
        raise TypeError("no role to assume")
    wanted = {"RoleArn": role.arn, "RoleSessionName": role.session_name}
    return wanted | ({"ExternalId": role.external_id} if role.external_id else {})


def session_of_role(access: AwsAccess) -> Session:
    """A session whose clients use the role's credentials, and no others."""
    session = Session()
    session.register_component("credential_provider", CredentialResolver([_RoleProvider(access)]))
    return session
