"""Credentials of a role that the sink assumes. boto3 renews them before they expire, without a restart."""

from __future__ import annotations

from botocore.client import BaseClient
from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
    create_assume_role_refresher,
)
from botocore.session import Session

from s3sink_job.stores.s3.connection import DEFAULT_REGION, Connection


class _RoleProvider(CredentialProvider):
    METHOD = "assume-role"
    CANONICAL_NAME = "AssumeRole"

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def load(self) -> Credentials:
        """Asks for nothing yet: the first request of the store does."""
        return DeferredRefreshableCredentials(
            refresh_using=create_assume_role_refresher(_sts(self._connection), _request(self._connection)),
            method=self.METHOD,
        )


def _sts(connection: Connection) -> BaseClient:
    role = connection.role
    options = connection.keys.client_options
    if role is not None and role.endpoint:
        options["endpoint_url"] = role.endpoint
        if connection.ca is not None:
            options["verify"] = connection.ca
    session = Session()
    region = connection.region or session.get_config_variable("region") or DEFAULT_REGION
    return session.create_client("sts", region_name=region, config=connection.sts_config(), **options)


def _request(connection: Connection) -> dict[str, str]:
    role = connection.role
    if role is None:
        raise TypeError("the destination has no role to assume")
    wanted = {"RoleArn": role.arn, "RoleSessionName": role.session_name}
    return wanted | ({"ExternalId": role.external_id} if role.external_id else {})


def session_of_role(connection: Connection) -> Session:
    """A session whose clients use the role's credentials, and no others."""
    session = Session()
    session.register_component("credential_provider", CredentialResolver([_RoleProvider(connection)]))
    return session
