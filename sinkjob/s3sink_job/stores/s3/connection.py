"""How a destination is reached. It is the key of cached clients."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_api.spec import Destination
from s3sink_job.base.aws_access import AwsAccess, aws_keys, ca_file, proxy_url
from s3sink_job.base.secrets import Secrets


@dataclass(frozen=True)
class Connection:
    access: AwsAccess
    path_style: bool
    requester_pays: bool


def connection_of(destination: Destination, secrets: Secrets) -> Connection:
    access = AwsAccess(
        region=destination.region or "",
        endpoint=destination.endpoint or "",
        role=destination.assume_role,
        ca=ca_file(destination.ca_from, secrets),
        keys=aws_keys(destination.credentials, secrets),
        proxy=proxy_url(destination.proxy, secrets),
        connect_timeout=destination.timeouts.connect,
        read_timeout=destination.timeouts.read,
        connections=destination.max_connections,
    )
    return Connection(access, path_style=destination.use_path_style, requester_pays=destination.requester_pays)
