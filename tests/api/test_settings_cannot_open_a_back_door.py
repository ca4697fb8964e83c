from __future__ import annotations

import pytest

from s3sink_api.spec import SpecError, parse, refused_conf, refused_property
from tests.api.documents import errors_of, minimal, put

CLASS_NAMES = [
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "ssl.engine.factory.class",
    "interceptor.classes",
    "metric.reporters",
    "client.telemetry.reporters",
    "key.deserializer",
    "value.deserializer",
    "Value.Deserializer",
    "value.serializer",
    "config.providers",
    "config.providers.file.class",
    "security.providers",
    "partition.assignment.strategy",
    "sasl.kerberos.kinit.cmd",
]
OWNED = ["bootstrap.servers", "group.id", "isolation.level", "auto.offset.reset", "enable.auto.commit"]
SECRETS = [
    "sasl.jaas.config",
    "listener.name.x.sasl.jaas.config",
    "ssl.keystore.password",
    "ssl.key.password",
    "SSL.TRUSTSTORE.PASSWORD",
    "ssl.keystore.key",
    "sasl.oauthbearer.token",
    "sasl.oauthbearer.token.value",
    "some.token.e",
    "mytokens",
    "sasl.oauthbearer.client.credentials.client.secret",
]
ORDINARY = [
    "security.protocol",
    "sasl.mechanism",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "max.poll.records",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "client.id",
    "client.rack",
    "request.timeout.ms",
]


@pytest.mark.parametrize("key", CLASS_NAMES)
def test_a_kafka_property_cannot_load_code_even_from_a_secret(key):
    assert "would load code" in refused_property(key, from_secret=False)
    assert "would load code" in refused_property(key, from_secret=True)


@pytest.mark.parametrize("key", OWNED)
def test_a_kafka_property_cannot_undo_what_the_sink_sets_even_from_a_secret(key):
    assert "is set by the sink" in refused_property(key, from_secret=False)
    assert "is set by the sink" in refused_property(key, from_secret=True)


@pytest.mark.parametrize("key", SECRETS)
def test_passwords_belong_into_secrets_and_may_stand_there(key):
    assert "put it into a Secret and name that in spec.source.propertiesFrom" in refused_property(key, False)
    assert refused_property(key, from_secret=True) is None


@pytest.mark.parametrize("key", ORDINARY)
def test_ordinary_kafka_properties_are_taken(key):
    assert refused_property(key, from_secret=False) is None
    assert refused_property(key, from_secret=True) is None


@pytest.mark.parametrize("key", ["", " client.id", "client.id\n", "a b", "клиент"])
def test_what_is_no_property_name_is_refused(key):
    assert "must be a Kafka property's name" in refused_property(key, from_secret=True)


OAUTH = ["sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url"]


@pytest.mark.parametrize("key", OAUTH)
def test_an_address_that_the_client_calls_stands_where_people_see_it(key):
    assert refused_property(key, from_secret=False) is None
    assert "set it in spec.source.properties" in refused_property(key, from_secret=True)
    assert "set it in spec.source.properties" in refused_property(f"listener.name.x.{key}", from_secret=True)


@pytest.mark.parametrize("key", OAUTH)
@pytest.mark.parametrize("url", ["https://login.example.com/oauth2/token", "https://[::1]:8443", "https://a/%7Eb/c=d"])
def test_an_address_for_tokens_may_be_any_with_tls(key, url):
    assert parse(put(minimal(), "spec.source.properties", {key: url})).spec.source.properties == {key: url}


@pytest.mark.parametrize("key", OAUTH)
@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "http://169.254.169.254/latest", "HTTPS://a/b", "https://a/b?c=d", "https://a/b#c"),
        *(
            "https://a,file:///etc/passwd",
            "https://a -Dx=y",
            "https://a'/b",
            "https://",
            "",
            " https://a",
            "https://a\n",
        ),
    ],
)
def test_an_address_for_tokens_is_never_a_file_or_without_tls(key, url):
    errors = errors_of(put(minimal(), "spec.source.properties", {key: url}))
    assert list(errors) == [f"spec.source.properties[{key}]"]


@pytest.mark.parametrize("value", ["${dir:/var/run/secrets/kubernetes.io/serviceaccount:token}", "a${b", "${"])
def test_a_property_cannot_have_kafkas_client_read_a_file(value):
    errors = errors_of(put(minimal(), "spec.source.properties", {"client.id": value}))
    assert list(errors) == ["spec.source.properties[client.id]"]
    assert "must not contain ${" in errors["spec.source.properties[client.id]"]


def test_the_prefix_of_sparks_connector_is_named():
    assert refused_property("kafka.group.id", False).endswith("write group.id")


def test_refused_properties_are_named_one_by_one():
    properties = {"sasl.jaas.config": "x", "group.id": "g", "client.id": "fine", "interceptor.classes": "c"}
    errors = errors_of(put(minimal(), "spec.source.properties", properties))
    assert list(errors) == [
        "spec.source.properties[sasl.jaas.config]",
        "spec.source.properties[group.id]",
        "spec.source.properties[interceptor.classes]",
    ]


REFUSED_CONF = [
    "spark.kubernetes.namespace",
    "spark.Kubernetes.driver.podTemplateFile",
    "spark.jars",
    "spark.jars.packages",
    "spark.files",
    "spark.archives",
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.executor.defaultJavaOptions",
    "spark.executor.extraClassPath",
    "spark.executor.pod.template.x",
    "spark.master",
    "spark.submit.pyFiles",
    "spark.app.name",
    "spark.sql.adaptive.enabled",
    "spark.speculation",
    "spark.speculation.interval",
    "spark.python.daemon.module",
    "spark.python.use.daemon",
    "spark.python.worker.module",
    "spark.pyspark.python",
    "spark.plugins",
    "spark.extraListeners",
    "spark.sql.queryExecutionListeners",
    "spark.sql.extensions",
    "spark.sql.catalog.x",
    "spark.redaction.regex",
    "spark.sql.redaction.string.regex",
    "spark.executorEnv.LD_PRELOAD",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.authenticate",
    "spark.authenticate.secret",
    "spark.network.crypto.enabled",
    "spark.io.encryption.enabled",
    "spark.ssl.rpc.enabled",
    "spark.ui.filters",
    "spark.metrics.conf.driver.sink.x.class",
    "spark.executor.resource.gpu.discoveryScript",
    "spark.serializer",
]


@pytest.mark.parametrize("key", REFUSED_CONF)
def test_a_spark_setting_cannot_take_over_the_pod_or_the_protocol(key):
    assert refused_conf(key)
    assert list(errors_of(put(minimal(), "spec.spark.conf", {key: "x"}))) == [f"spec.spark.conf[{key}]"]


@pytest.mark.parametrize("key", ["sql.shuffle.partitions", "", "spark.", " spark.master", "spark.a b"])
def test_what_is_no_spark_setting_is_refused(key):
    assert "starts with spark." in refused_conf(key)


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.session.timeZone",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.task.maxFailures",
        "spark.python.worker.memory",
        "spark.python.worker.reuse",
        "spark.executor.heartbeatInterval",
        "spark.network.timeout",
    ],
)
def test_ordinary_spark_settings_are_taken(key):
    assert refused_conf(key) is None


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.source.properties", {"sasl.jaas.config": SECRET}),
        ("spec.source.properties", {"client.id": f"http://user:{SECRET}@proxy/"}),
        ("spec.source.properties", {"client.id": f'x.PlainLoginModule required password="{SECRET}";'}),
        ("spec.source.properties", {"client.id": [SECRET]}),
        ("spec.source.properties", SECRET),
        ("spec.source.propertiesFrom", SECRET),
        ("spec.source.propertiesFrom", [{"secretRef": {"name": f"{SECRET}!"}}]),
        ("spec.source.bootstrapServers", f"user:{SECRET}@kafka:9092"),
        ("spec.source.value.schemaRegistry", {"url": f"https://user:{SECRET}@registry"}),
        ("spec.destination.endpoint", f"https://user:{SECRET}@s3"),
        ("spec.destination.endpoint", f"https://{SECRET}@"),
        ("spec.destination.credentials", SECRET),
        ("spec.destination.credentials", {"secretRef": SECRET}),
        ("spec.destination.credentials", {"secretRef": {"name": "s3", "secretAccessKey": SECRET}}),
        ("spec.destination.credentials", {"accessKey": "AKIA", "secretKey": SECRET}),
        ("spec.source.password", SECRET),
        ("spec.spark.conf", {"spark.a": [SECRET]}),
        ("spec.spark.conf", {"spark.x.password": SECRET}),
        ("spec.spark.conf", {"spark.x": f"http://user:{SECRET}@proxy/"}),
        ("spec.spark.serviceAccountAnnotations", {"a": [SECRET]}),
        ("metadata.annotations", {"a": {"b": SECRET}}),
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_without_being_repeated(path, value):
    with pytest.raises(SpecError) as caught:
        parse(put(minimal(), path, value))
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
