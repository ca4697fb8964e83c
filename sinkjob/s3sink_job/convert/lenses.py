"""Lenses' S3 sink (Stream Reactor): a table of its keys. KCQL is in `lenses_statements.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from s3sink_api.spec import Delivery
from s3sink_job.convert import connect
from s3sink_job.convert.draft import Draft, plain
from s3sink_job.convert.lenses_statements import convert_statements, headers_of, statements_of
from s3sink_job.convert.rules import (
    Rule,
    apply,
    constant_backoff,
    count,
    differs,
    flag,
    lost,
    milliseconds,
    one_of,
    only,
    positive,
    same,
    secret,
    to,
)
from s3sink_job.convert.smts import convert_transforms

SYSTEM = "Lenses S3 sink"


def _auth_mode(draft: Draft, key: str, value: Any) -> None:
    match plain(value).strip().lower():
        case "default" | "":
            draft.exact(key, "spec.destination.credentials is left out: the default chain of AWS")
        case "credentials":
            draft.exact(key, "spec.destination.credentials")
        case _:
            draft.lost(key, "is neither Default nor Credentials; see spec.destination.credentials")


def _policy(draft: Draft, key: str, value: Any) -> None:
    match plain(value).strip().upper():
        case "THROW":
            draft.different(key, "S3Sink retries 20 times (errors.retries), is then Degraded and goes on trying")
        case "RETRY":
            draft.exact(key, "spec.errors.retries; afterwards S3Sink is Degraded and goes on trying")
        case _:
            draft.lost(
                key,
                "ignoring failures of the store would lose records, so that S3Sink has no such setting."
                " For bad records there is errors.records: Skip",
            )


def _only_with_retry(path: str, rule: Rule) -> Rule:
    def carried(draft: Draft, key: str, value: Any) -> None:
        if draft.text("connect.s3.error.policy", "THROW").strip().upper() == "RETRY":
            rule(draft, key, value)
        else:
            draft.exact(key, f"has no effect there without RETRY; spec.{path} is the default here")

    return carried


def _path_style(draft: Draft, key: str, value: Any) -> None:
    text = "there it is passed on as the switch for path style, whatever its name says"
    to("destination.pathStyle", flag, text)(draft, key, value)


def _delivery(draft: Draft, key: str, value: Any) -> None:
    one_of("delivery", dict(zip(("true", "false"), get_args(Delivery), strict=True)))(draft, key, value)


_ACCOUNT: Mapping[str, Rule] = {
    "aws.auth.mode": _auth_mode,
    "aws.access.key": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    "aws.secret.key": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    "aws.session.token": secret("s3", "AWS_SESSION_TOKEN", "destination.credentials"),
    "aws.region": to("destination.region"),
    "aws.custom.endpoint": to("destination.endpoint"),
    "aws.vhost.bucket": _path_style,
}
"""Old releases have these names, new ones the same behind `connect.s3.`."""
TABLE: Mapping[str, Rule] = {
    **connect.TABLE,
    **_ACCOUNT,
    **{f"connect.s3.{name}": rule for name, rule in _ACCOUNT.items()},
    "connect.s3.aws.client": same("S3Sink has one client"),
    "connect.s3.custom.endpoint": to("destination.endpoint"),
    "connect.s3.vhost.bucket": _path_style,
    "connect.s3.path.style.access": to("destination.pathStyle", flag),
    "connect.s3.pool.max.connections": to("destination.maxConnections", positive),
    "connect.s3.error.policy": _policy,
    "connect.s3.max.retries": _only_with_retry("errors.retries.max", to("errors.retries.max", count)),
    "connect.s3.retry.interval": _only_with_retry("errors.retries.backoff", constant_backoff),
    "connect.s3.http.max.retries": to("errors.requestRetries.max", count),
    "connect.s3.http.retry.interval": to("errors.requestRetries.backoff", milliseconds),
    "connect.s3.http.socket.timeout": to("destination.timeouts.read", milliseconds),
    "connect.s3.http.connection.timeout": to("destination.timeouts.connect", milliseconds),
    "connect.s3.local.tmp.directory": differs("the spill folder is a volume of the pod: spec.spark.driver.spill"),
    "connect.s3.seek.max.files": same("S3Sink keeps its offsets in one state object"),
    "connect.s3.indexes.name": differs(
        "the index objects are not used; spec.destination.statePrefix holds the state. s3sink takeover reads them once"
    ),
    "connect.s3.exactly.once.enable": _delivery,
    "connect.s3.schema.change.detector": one_of(
        "format.schemaEvolution.onChange", {"default": "Roll", "version": "Roll", "compatibility": "Merge"}
    ),
    "connect.s3.latest.schema.optimization.enabled": one_of(
        "format.schemaEvolution.onChange", {"true": "Merge", "false": "Roll"}
    ),
    "connect.s3.skip.null.values": one_of("nullValues", {"true": "Skip", "false": "Write"}),
    "connect.s3.write.mode": same("S3Sink has one way to write"),
    "connect.s3.disable.flush.count": only(("false",), "is off there, and off here", "set spec.flush.records high"),
    "connect.progress.enabled": same("progress is on /status and in the logs"),
    "connect.s3.log.metrics": same("metrics are on /metrics"),
}
PATTERNS: Mapping[str, Rule] = {
    **connect.PATTERNS,
    r"connect\.s3\.source\..*": lost("is a setting of the source connector"),
    r"connect\.s3\.indexes\..*": same("S3Sink has no index objects to clean up"),
}


def convert_lenses(draft: Draft) -> None:
    statements = statements_of(draft)
    headers = convert_transforms(draft, headers_of(statements))
    connect.convert_connector(draft)
    convert_statements(draft, statements, headers)
    apply(draft, TABLE, PATTERNS)
    if not draft.has("connect.s3.schema.change.detector") and draft.value_at("format.type") in {"Avro", "Parquet"}:
        _schema_changes(draft)


def _schema_changes(draft: Draft) -> None:
    if draft.value_at("format.schemaEvolution.onChange") is None:
        draft.put("format.schemaEvolution.onChange", "Roll")
        draft.note(
            "the connector begins a new object when the schema changes: spec.format.schemaEvolution.onChange: Roll."
            " Merge makes fewer objects."
        )
