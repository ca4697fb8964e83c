"""boto3's clients, with the keys of a Secret, AWS' default chain, or the credentials of a role that is assumed."""

from __future__ import annotations

from typing import Any

import boto3

from s3sink_job.base.assumed_role import session_of_role
from s3sink_job.base.aws_access import AwsAccess


def aws_client(service: str, access: AwsAccess, default_region: str | None = None, **config: Any) -> Any:
    """`config` is for botocore's Config."""
    options: dict[str, Any] = {}
    region = access.region or None
    if access.role is None:
        session = boto3.session.Session(region_name=region)
        options |= access.keys.client_options
    else:
        session = boto3.session.Session(region_name=region, botocore_session=session_of_role(access))
    if access.endpoint:
        options["endpoint_url"] = access.endpoint
    if access.ca is not None:
        options["verify"] = access.ca
    # botocore would build its own user agent twice for each request.
    wanted = access.config(user_agent=f"s3sink Boto3/{boto3.__version__}", **config)
    create: Any = session.client
    return create(service, region_name=session.region_name or default_region, config=wanted, **options)
