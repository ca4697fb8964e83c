"""Settings of a topic, and topics that the sink creates for records that have to stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from py4j.protocol import Py4JJavaError

from s3sink_job.base.errors import S3SinkError
from s3sink_job.kafka.admin import Admin, root


def topic_settings(admin: Admin, topic: str, names: Iterable[str]) -> dict[str, str]:
    """The values of these settings. Those that the broker does not have are left out."""
    kind = admin.jvm.org.apache.kafka.common.config.ConfigResource
    resource = kind(kind.Type.TOPIC, topic)
    try:
        answer = admin.client.describeConfigs(admin.java_list([resource])).all().get().get(resource)
    except Py4JJavaError as error:
        raise admin.translate(error, f"describe the settings of topic {topic} (needs DescribeConfigs)") from None
    found = {name: answer.get(name) for name in names}
    return {name: str(entry.value()) for name, entry in found.items() if entry is not None}


def create_topic(
    admin: Admin, topic: str, partitions: int, replication: int | None, settings: Mapping[str, str]
) -> S3SinkError | None:
    """The broker's own replication unless it is given. One that exists by now is fine. Returns what went wrong."""
    wanted = admin.jvm.org.apache.kafka.clients.admin.NewTopic(topic, partitions, replication or -1)
    wanted.configs(admin.java_map(settings))
    try:
        admin.client.createTopics(admin.java_list([wanted])).all().get()
    except Py4JJavaError as error:
        if root(error) != "TopicExistsException":
            return admin.translate(error, f"create topic {topic}")
    return None


def cluster_id(admin: Admin) -> str:
    try:
        return str(admin.client.describeCluster().clusterId().get())
    except Py4JJavaError as error:
        raise admin.translate(error, "describe the cluster") from None
