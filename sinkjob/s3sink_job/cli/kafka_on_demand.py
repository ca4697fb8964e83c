"""Access to Kafka for commands that often do without: Spark starts with the first use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import cache
from typing import TYPE_CHECKING

from s3sink_job.cli.opened_sink import OpenedSink

if TYPE_CHECKING:
    from s3sink_job.proof.kafka_records import KafkaAccess


def kafka_on_demand(opened: OpenedSink, started: ExitStack) -> Callable[[], KafkaAccess]:
    """Starts Spark at the first call, and stops it with `started`."""

    @cache
    def access() -> KafkaAccess:
        from s3sink_job.cli.command_spark import open_admin, spark_session
        from s3sink_job.proof.kafka_records import KafkaAccess

        spark = started.enter_context(spark_session(opened))
        admin = started.enter_context(closing(open_admin(opened, spark)))
        return KafkaAccess(spark, admin, opened.connection())

    return access
