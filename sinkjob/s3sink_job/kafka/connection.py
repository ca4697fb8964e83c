"""The connection of a driver to Kafka: an admin client that is replaced when the mounted secrets change."""

from __future__ import annotations

from pyspark.sql import SparkSession

from s3sink_api.spec import Source
from s3sink_job.base.secrets import Secrets
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection


class KafkaConnection:
    def __init__(self, spark: SparkSession, source: Source, secrets: Secrets) -> None:
        self._spark, self._source, self._secrets = spark, source, secrets
        self._admin: Admin | None = None
        self.properties: dict[str, str] = {}
        """Of the present admin client. Spark's consumers get the same."""

    def admin(self) -> Admin:
        wanted = connection(self._source, self._secrets)
        if self._admin is None or wanted != self.properties:
            self.close()
            self._admin, self.properties = Admin(self._spark._jvm, wanted), wanted
        return self._admin

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None
