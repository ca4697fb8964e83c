"""Values for every field of the resource, right and wrong ones: by hand, from the schema, and at random."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from s3sink_api.definition import definition
from s3sink_api.spec import CODECS, LEVELS
from tests.api.documents import Document, Steps, documents, full, minimal, put
from tests.api.test_mistakes_are_named import REFUSED
from tests.api.test_settings_cannot_open_a_back_door import CLASS_NAMES, ORDINARY, OWNED, REFUSED_CONF, SECRETS

SCHEMA = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
_TIME = {"type": "Time", "source": "Record", "format": "yyyy"}
_ORDERS = {"topic": "orders", "partition": 0, "offset": 1}

TEXTS = [
    *("", " ", "x", "a b", "é", "日本", "a\tb", "a\nb", "a\x7fb", "a\x85b", "\u2028", "\u3000", "x" * 256, "x" * 257)
]
AMOUNTS = [*(0, 1, -1, 5.0, 2**62, 2**70, "0", "1", "1.5", "0.001k", "1.1Gi", "1.1111Gi", "512Mi", "511.999Mi", "64mb")]
AMOUNTS += [
    *("5Gi", "1Ei", "1.001Ei", "9Ei", "99999999999Ei", "1e3", "100m", "-1Mi", " 1Mi", "07Mi", "9" * 64, "9" * 65)
]
PATTERNS = [*("'year='yyyy", "'year=yyyy", "''", "'", "", "y" * 256, "x" * 256, "x" * 257, "year", "yyyy-MM-dd HH:mm")]
PATTERNS += [
    *("'a''b'yyyy", "''yyyy''MM", "yyyy'T'", "y" * 9, "y" * 10, "yyyyyyyyy''yyyyyyyyy", "'yyyyyyyyyy'", "aa", "a")
]
PATTERNS += [
    *("DDD", "DDDD", "MMMMM", "MMMMMM", "ww", "www", "S" * 9, "S" * 10, "[yyyy]", "'[{#'", "yyyy#", "{", "é日")
]
PATTERNS += [
    *("/yyyy", "yyyy/", "yyyy//MM", "yyyy/MM", "'/'", "'a/'/yyyy", "'a/'yyyy", "yyyy/''/MM", "yyyy/'/'MM", "z")
]
PATTERNS += [*("'/a'", "'a/'", "yyyy/'", "''/''", "yyyy/'''/'MM", "'a'/'b'", " ", "yyyy/ /MM", "1/2")]
DURATIONS = [
    *("0s", "1ms", "0.5ms", "0.001s", "0.0001s", "1h30m", "1.5h", "1d", "5", "", "-1s", "1h 1m", "1m1h", "9" * 64)
]
DURATIONS += [*("2562047h47m16.854s", "2562047h47m16.855s", "0h0m", "1us", "\u0661s", 5)]
PREFIXES = [*("raw", "a/b c", "été/x", "/raw", "raw/", "a//b", ".", "..", "a/../b", "a/.b", "a\nb", "a\x80b", "\u2029")]
PREFIXES += ["x" * 512, "x" * 513, "é" * 256, "é" * 257, "orders", ".s3sink", ".s3sink/x", ".s3sinks", "state"]
URLS = [*("http://x", "https://x:9000", "https://[::1]:9000/a/b", "HTTP://x", "ftp://x", "x", "http://", "http://x:0")]
URLS += [
    *("http://x:65535", "http://x:65536", "http://x:99999", "http://u:p@x", "http://x/@", "http://x?a", "http://x#a")
]
URLS += [
    *(
        "http://x y",
        "http://x/\x0b",
        "http://münchen",
        "https://s3.eu_x.com/p%20",
        f"http://{'x' * 2041}",
        "http://x/\n",
    )
]
URLS += [f"http://{'x' * 2042}"]
TOPICS = [*(".", "..", "...", "a.b", "a_B-9", "a/b", "", "ä", "x" * 249, "x" * 250, "a\n")]
INSTANTS = [*("2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01t00:00:00z", "2026-01-01T00:00:00.123456789+23:59")]
INSTANTS += [
    *("2024-02-29", "2026-02-29", "2000-02-29", "2100-02-29", "2026-04-31", "2026-13-01", "2026-00-01", "1969-12-31")
]
INSTANTS += [*("2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00+24:00")]
INSTANTS += [*("2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "3000-01-01", "0000-01-01", "1700000000", "yesterday")]
SCHEDULES = [
    *("0 * * * *", "*/15 0-6,12 1 jan MON-fri", "@hourly", "@reboot", "0 0 1 1 ?", "1-5/2 * * * 0", "", "* * * *")
]
SCHEDULES += [
    *("60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "*/0 * * * *", "5-1 * * * *", "a * * * *")
]
SCHEDULES += [
    *(
        "* * * * * *",
        "1,,2 * * * *",
        "* * * feb-jan *",
        "* * * 1-feb *",
        "* * * * sat-sun",
        " 0  *  * * * ",
        "0\t* * * *",
    )
]
SCHEDULES += [
    *("05 08 09 07 06", "0-59 0-23 1-31 1-12 0-6", "59-58 * * * *", "1/99 * * * *", "1/100 * * * *", "TZ=UTC 0 * * * *")
]
NAMES = [*("a", "A", "a.b", "a-b", "-a", "a-", "a..b", "ä", "a" * 63, "a" * 64, "a" * 253, "a" * 254)]
REGEXES = [*("a.*", "(", "[a", "a{2", "\\p{Lu}+", "(?<x>a)", "a++", "*")]
SCHEMAS = ["", "{", "[]", "{}", '{"type": "object"}', '{"type": "object", "properties": {"a": {"type": "integer"}}}']
SCHEMAS += ['"long"', '{"type": "record", "name": "R", "fields": []}', '{"type": "record", "fields": []}']
SCHEMAS += ['{"type": "object", "properties": {"_more": {"type": "string"}}}']
PROPERTIES: list[Any] = [{key: "x"} for key in (*CLASS_NAMES, *OWNED, *SECRETS, *ORDINARY)]
PROPERTIES += [
    {key: "x"} for key in ("", " client.id", "a b", "клиент", "kafka.group.id", "a" * 256, "a" * 257, "Group.ID")
]
PROPERTIES += [
    {key: "x"} for key in ("myclass", "my.class", "a.Serializer", "serializers", "api.key", "apikey", "x.cmd", "cmd")
]
PROPERTIES += [
    {"client.id": v} for v in ("", "http://u:p@x", "x http://u@x", "a://b\t@c", "x.PLAINLOGINMODULE y", "é", "a\nb")
]
PROPERTIES += [
    {"client.id": "x" * 16_384},
    {"client.id": "x" * 16_385},
    {"client.id": 5},
    {f"a{n}": "" for n in range(128)},
]
PROPERTIES += [{f"a{n}": "" for n in range(129)}]
CONF: list[Any] = [{key: "x"} for key in REFUSED_CONF]
CONF += [
    {key: "x"}
    for key in ("spark.a", "a", "", "spark.", "spark.a b", "spark." + "a" * 250, "spark." + "a" * 251, "SPARK.A")
]
CONF += [{"spark.sql.session.timeZone": v} for v in ("UTC", "http://u:p@x", "x" * 4096, "x" * 4097, True)]
TAGS: list[Any] = [{"a": v} for v in ("", "x y", "é日", "a\nb", "a!", "x" * 256, "x" * 257, "½²Ⅷ", "_:/@+-=.", "é", 5)]
TAGS += [{k: ""} for k in ("", "aws:a", "AWS:a", "x" * 128, "x" * 129, "a\tb", "ключ")]
TAGS += [{f"t{n}": "" for n in range(count)} for count in (10, 11)]
ANNOTATIONS: list[Any] = [
    {k: "x"} for k in ("eks.amazonaws.com/role-arn", "a", "a/b/c", "", "a b", "/a", "a/", "A.b/c", "-a")
]
ANNOTATIONS += [
    {k: "x"} for k in ("a" * 63, "a" * 64, "a/" + "a" * 63, "a" * 190 + "/" + "a" * 62, "a" * 191 + "/" + "a" * 62)
]
ANNOTATIONS += [{"a": "x" * 4096}, {"a": "x" * 4097}, {"a": ""}, {f"a{n}": "" for n in range(65)}]
STARTS: list[Any] = [
    {},
    {"position": "Earliest"},
    {"position": "earliest"},
    {"position": "Latest", "timestamp": "2026-01-01"},
    {"position": "Timestamp"},
    *({"position": "Timestamp", "timestamp": at} for at in INSTANTS),
    {"position": "Timestamp", "timestamp": "2026-01-01", "offsets": [_ORDERS]},
    {"position": "Offsets"},
    {"position": "Offsets", "offsets": []},
    {"position": "Offsets", "offsets": [_ORDERS]},
    {"position": "Offsets", "offsets": [_ORDERS, _ORDERS | {"offset": 2}]},
    {"position": "Offsets", "offsets": [_ORDERS, _ORDERS | {"partition": 1}]},
    *({"position": "Offsets", "offsets": [_ORDERS | {"topic": topic}]} for topic in TOPICS),
    *({"position": "Offsets", "offsets": [_ORDERS | {"partition": n}]} for n in (-1, 2**31 - 1, 2**31, 1.5, "0")),
    *({"position": "Offsets", "offsets": [_ORDERS | {"offset": n}]} for n in (-1, 2**63 - 1, 2**63, "0")),
    {"position": "Offsets", "offsets": [{"topic": "orders", "partition": 0}]},
    {"position": "Offsets", "offsets": [_ORDERS], "nonsense": 1},
]
ITEMS: list[Any] = [
    [],
    [{"type": "Topic"}, {"type": "Partition"}],
    [{"type": "Topic"}, {"type": "Topic"}],
    [{"type": "Topic", "path": ["a"]}],
    *(
        [item | {"as": "x"}]
        for item in (
            {"type": "Topic"},
            {"type": "Partition"},
            {"type": "Key"},
            {"type": "Header", "name": "a"},
            _TIME,
        )
    ),
    [{"type": "Topic", "name": "a"}],
    [{"type": "Partition", "timezone": "UTC"}],
    [{"type": "topic"}],
    [{}],
    [{"type": "Field"}],
    [{"type": "Field", "path": []}],
    *([{"type": "Field", "path": [text]}] for text in TEXTS),
    [{"type": "Field", "path": ["a"] * 8}],
    [{"type": "Field", "path": ["a"] * 9}],
    *(
        [{"type": "Field", "path": ["a"], "as": text}]
        for text in ("", "a/b", "a=b", "x" * 128, "x" * 129, "a\x00b", "é")
    ),
    [{"type": "Field", "path": ["a"]}, {"type": "Field", "path": ["a"], "as": "b"}],
    [{"type": "Field", "path": ["a"], "as": "b"}, {"type": "Field", "path": ["a"], "as": "b"}],
    [{"type": "Key"}, {"type": "Key", "path": ["a"]}],
    [{"type": "Key", "path": ["a"]}, {"type": "Field", "path": ["a"]}],
    [{"type": "Header"}],
    [{"type": "Header", "name": "a"}, {"type": "Header", "name": "b"}],
    [{"type": "Header", "name": "a"}, {"type": "Header", "name": "a"}],
    [{"type": "Time"}],
    [_TIME],
    [_TIME, _TIME],
    [_TIME | {"every": "60s"}, _TIME | {"every": "1m"}],
    [_TIME | {"every": "1m"}, _TIME | {"every": "2m"}, _TIME],
    [_TIME | {"every": "soon"}, _TIME | {"every": "soon"}],
    *([_TIME | {"every": every}] for every in DURATIONS),
    [_TIME | {"source": "Field"}],
    [_TIME | {"source": "Field", "path": ["a"]}],
    [_TIME | {"path": ["a"]}],
    [_TIME | {"source": "Clock"}],
    *([_TIME | {"format": text}] for text in PATTERNS),
    [_TIME | {"source": "Wallclock"}],
    *([_TIME | {"timezone": text}] for text in ("UTC", "Europe/Berlin", "", "a b", "x" * 64, "x" * 65, "Etc/GMT+1")),
    *([_TIME | {"locale": text}] for text in ("en", "en_US", "e", "en-", "de-DE-x", "x" * 9, "en_" + "a" * 62)),
    [{"type": "Header", "name": str(n)} for n in range(12)],
    [{"type": "Header", "name": str(n)} for n in range(13)],
]
_ALIKE = [{"type": "Key", "as": "a"}, {"type": "Header", "name": "a"}]
LAYOUTS: list[Any] = [
    {"hiveStyle": hive, "partitionBy": items}
    for hive in (True, False)
    for items in (
        _ALIKE,
        [{"type": "Topic"}, {"type": "Partition"}, {"type": "Key"}],
        [{"type": "Topic", "as": "partition"}, {"type": "Partition"}],
        [{"type": "Topic", "as": "a"}, {"type": "Partition", "as": "a"}],
        [{"type": "Key", "as": "b"}, {"type": "Field", "path": ["a", "b"]}],
        [{"type": "Header", "name": "key"}, {"type": "Key"}],
        [{"type": "Field", "path": ["b", "a"]}, {"type": "Field", "path": ["a"]}],
        [{"type": "Field", "path": ["a", "b"]}, {"type": "Field", "path": ["a"]}],
        [_TIME, _TIME | {"format": "MM"}],
        [_TIME | {"format": "'year='yyyy"}, {"type": "Topic", "as": "year"}],
        [_TIME | {"format": "'a='yyyy/'a='MM"}],
    )
]
LAYOUTS += [{"hiveStyle": True}, {"objectName": "Upload"}]
ENCRYPTIONS: list[Any] = [
    {},
    {"type": "AES256"},
    {"type": "aes256"},
    {"type": "AES256", "keyId": "x"},
    {"type": "KMS"},
    *({"type": "KMS", "keyId": text} for text in TEXTS),
    {"type": "KMS", "keyId": "x", "secretRef": {"name": "a"}},
    {"type": "CustomerKey"},
    {"type": "CustomerKey", "secretRef": {}},
    *({"type": "CustomerKey", "secretRef": {"name": name}} for name in NAMES),
]
_CODECS = sorted({codec for codecs in CODECS.values() for codec in codecs})
FORMATS: list[Any] = [{"type": kind, "compression": {"codec": codec}} for kind in CODECS for codec in (*_CODECS, "Lzo")]
FORMATS += [
    {"type": next(kind for kind in CODECS if codec in CODECS[kind]), "compression": {"codec": codec, "level": level}}
    for codec, (low, high) in LEVELS.items()
    for level in (low - 1, low, high, high + 1)
]
FORMATS += [{"type": "Parquet", "compression": {"codec": codec, "level": 1}} for codec in CODECS["Parquet"]]
FORMATS += [{"type": "Json", "compression": {"codec": "Gzip", "level": level}} for level in (-1, 0, 9, 10, 1e30, "1")]
FORMATS += [
    {"type": "Orc", "compression": {"codec": "Zstd", "level": 1}},
    {"type": "Orc", "compression": {"codec": "Zstd"}},
]
FORMATS += [
    {"type": kind, "csv": {"delimiter": d}}
    for kind in ("Csv", "Json")
    for d in (",", ";", "", ";;", '"', "\n", "\0", "é")
]
FORMATS += [
    {"type": "Avro", "csv": {"header": True}},
    {"type": "Avro", "csv": {"header": False}},
    {"csv": {"quote": "All"}},
]
FORMATS += [
    {"type": "Json", "parquet": {"rowGroupBytes": size}} for size in ("64Mi", "65536Ki", 67108864, "63Mi", "64mb")
]
FORMATS += [{"type": "Json", "parquet": {"dictionary": flag}} for flag in (True, False)]
FORMATS += [{"type": kind, "parquet": {"timestamps": "Micros"}} for kind in ("Parquet", "Orc")]
FORMATS += [{"type": "Json", "parquet": {"timestamps": unit}} for unit in ("Unchanged", "Nanos")]
FORMATS += [{"type": kind, "columns": {"meta": meta}} for kind in ("Text", "Bytes", "Csv") for meta in ("None", "Quix")]
FORMATS += [{"type": "Json", "columns": {"flatten": flatten}} for flatten in (True, False)]
FORMATS += [
    {"type": kind, "columns": {"meta": meta, "flatten": True}}
    for kind in ("Json", "Text")
    for meta in ("None", "Kafka", "Airbyte")
]
FORMATS += [{"type": kind, "envelope": {"enabled": flag}} for kind in CODECS for flag in (True, False)]
_NO_PART: dict[str, Any] = dict.fromkeys(("key", "value", "headers", "metadata"), False)
FORMATS += [{"type": "Json", "envelope": _NO_PART | {"enabled": flag}} for flag in (True, False)]
FORMATS += [{"type": "Json", "envelope": _NO_PART | {"enabled": True, part: True}} for part in _NO_PART]
FORMATS += [
    {"type": "Json", "columns": {"meta": meta}, "envelope": {"enabled": flag}}
    for meta in ("None", "Airbyte")
    for flag in (True, False)
]
_FORMATS_OF_ROUTES: list[Any] = [
    {},
    {"csv": {"header": False}},
    {"csv": {"header": True, "delimiter": ",", "quote": "Minimal"}},
    {"parquet": {"rowGroupBytes": "64Mi"}},
    {"parquet": {"rowGroupBytes": "65536Ki"}},
    {"parquet": {"rowGroupBytes": "1Mi"}},
    {"columns": {"meta": "Kafka"}},
    {"columns": {"meta": "None"}},
    {"columns": {"flatten": False}},
    {"columns": {"flatten": True}},
    {"columns": {"meta": "Airbyte"}},
    {"envelope": {"enabled": True}},
    {"envelope": {"enabled": False}},
    {"envelope": {"value": False}},
    {"compression": {"codec": "Snappy"}},
    {"compression": {"codec": "Zstd", "level": 3}},
    *({"type": kind} for kind in CODECS),
]
_FORMATS_OF_SINKS: list[Any] = [
    {"type": "Csv", "csv": {"header": False}},
    {"type": "Parquet", "parquet": {"dictionary": False}, "compression": {"codec": "Zstd", "level": 3}},
    {"type": "Json", "columns": {"meta": "Airbyte", "flatten": True}},
    {"type": "Avro", "envelope": {"enabled": True, "key": False, "headers": False, "metadata": False}},
    {"type": "Bytes"},
]
ROUTES: list[Any] = [
    [],
    [{}],
    [{"topics": []}],
    [{"topics": ["a"]}, {"topics": ["b"]}],
    [{"topics": ["a"]}, {"topics": ["a"]}],
    [{"topics": ["a", "a"]}],
    *([{"topics": [topic]}] for topic in TOPICS),
    [{"topics": [f"t{n}" for n in range(251)]}],
    [{"topics": [f"t{n}"]} for n in range(64)],
    [{"topics": [f"t{n}"]} for n in range(65)],
    *([{"topics": ["a"], "format": form}] for form in FORMATS),
    *([{"topics": ["a"], "format": {"compression": {"codec": codec}}}] for codec in ("Snappy", "Bzip2")),
    *([{"topics": ["a"], "format": {"columns": {"meta": "Kafka"}, "type": kind}}] for kind in ("Text", "Json")),
    *([{"topics": ["a"], "layout": {"partitionBy": items}}] for items in ITEMS[:17]),
    *([{"topics": ["a"], "layout": layout}] for layout in LAYOUTS),
    *([{"topics": ["a"], "layout": {"partitionBy": [_TIME | {"format": text}]}}] for text in PATTERNS),
    *([{"topicPattern": pattern}] for pattern in (*REGEXES, *TEXTS)),
    [{"topicPattern": "a"}, {"topicPattern": "a"}],
    [{"topicPattern": "a", "topics": []}],
    [{"topicPattern": "a", "topics": ["a"]}],
    [{"topics": ["a"], "layout": {"onMissingValue": "DeadLetter"}}],
    *([{"topics": ["a"], "destination": {"prefix": prefix}}] for prefix in PREFIXES),
    [{"topics": ["a"], "destination": {"bucket": "Lake"}}],
    [{"topics": ["a"], "destination": {"statePrefix": "x"}}],
    [{"topics": ["a"], "flush": {"interval": "5"}}],
    [{"topics": ["a"], "spark": {}}],
]
DECODINGS: list[Any] = [
    {"format": kind} for kind in ("String", "Json", "ConnectJson", "Avro", "Protobuf", "JsonSchema", "json")
]
DECODINGS += [{"format": kind, "schema": text} for kind in ("String", "Json", "Avro", "Protobuf") for text in SCHEMAS]
DECODINGS += [{"format": "ConnectJson", **more} for more in ({"schema": "{}"}, {"schemaRegistry": {"url": "http://r"}})]
DECODINGS += [{"format": "Avro", "schemaRegistry": {"url": "http://r", "type": kind}} for kind in ("Confluent", "Glue")]
DECODINGS += [
    {"format": "Avro", "schemaRegistry": {"url": "http://r", name: {"secretRef": {"name": secret}}}}
    for name in ("credentialsFrom", "caFrom", "certFrom", "keyFrom")
    for secret in ("client", "Client")
]
DECODINGS += [
    {"format": kind, "schema": "{}", **more}
    for kind in ("Json", "Avro", "JsonSchema")
    for more in ({"validate": True}, {"validate": False}, {"times": "AsWritten"}, {"times": "Typed"}, {"times": "None"})
]
DECODINGS += [
    {"format": kind, "schemaRegistry": {"url": "http://r"}} for kind in ("String", "Json", "Avro", "Protobuf")
]
DECODINGS += [{"format": "Avro", "schemaRegistry": {"url": "http://r"}, "schema": text} for text in ("", "{}")]
DECODINGS += [{"format": "Avro", "schemaRegistry": {"url": url}} for url in URLS]
ROLE = "arn:aws:iam::1:role/x"
ROLES = [
    {},
    *({"arn": ROLE, "externalId": text} for text in ("42", "4", "a b", "x" * 1224, "x" * 1225)),
    *({"arn": ROLE, "sessionName": text} for text in ("ab", "a", "a:b", "x" * 64, "x" * 65)),
    *({"arn": ROLE, "endpoint": url} for url in URLS),
]
PROXIES = [{}, *({"url": url} for url in URLS), {"url": "http://p", "credentialsFrom": {}}]
DECODINGS += [{"format": "Avro", "schemaRegistry": {"type": "Glue", "assumeRole": role}} for role in ROLES]
DECODINGS += [{"format": "Avro", "schemaRegistry": {"type": "Glue", "proxy": proxy}} for proxy in PROXIES]
DECODINGS += [
    {"format": "Avro", "schemaRegistry": {"url": "http://r", **more}}
    for more in ({"assumeRole": {"arn": ROLE}}, {"proxy": {"url": "http://p"}})
]
DECODINGS += [
    {"schema": "x" * 262_145},
    {"format": "Avro", "schema": "x" * 262_144},
    {"format": "Avro", "schemaRegistry": {}},
]
ROUTES += [[{"topics": ["a"], "source": {"value": decoding}}] for decoding in DECODINGS]
ROUTES += [[{"topics": ["a"], "source": source}] for source in ({}, {"key": {}}, {"topics": ["a"]})]
DEAD_LETTERS: list[Any] = [{}, {"topic": "a", "prefix": "b"}, {"topic": "a", "replicationFactor": 0}, {"headers": True}]
DEAD_LETTERS += [{"prefix": "b", "replicationFactor": 3}, {"topic": "a", "replicationFactor": 32767}]
DEAD_LETTERS += [{"prefix": "b", "headers": False}, {"prefix": "b", "format": "Json"}, {"topic": "a", "format": "Json"}]
DEAD_LETTERS += [{"prefix": prefix} for prefix in PREFIXES] + [{"topic": topic} for topic in TOPICS]

# On top of the smallest manifest.
BY_HAND: dict[str, list[Any]] = {
    "spec.reset": [{}, {"nonce": "1", "to": {}}, *({"nonce": text} for text in TEXTS)],
    "spec.reset.to": STARTS,
    "spec.source.startingOffsets": STARTS,
    "spec.source.bootstrapServers": [
        *("a:1", "a:1,b:2", " a:1 , b:2 ", "a", "a:", ":1", "a:0", "a:65535", "a:65536", "a:1,", "[::1]:9092", "a:01"),
        *("u:p@a:1", "http://a:1", "a_b.c-d:1", "ä:1", "a:1\n", "a:1,\tb:2", ",".join(["kafka:9092"] * 400)),
    ],
    "spec.source.topics": [[topic] for topic in TOPICS] + [["a", "a"], ["a", "b"], [], [f"t{n}" for n in range(5001)]],
    "spec.source.maxBytesPerSecond": AMOUNTS,
    "spec.source.properties": PROPERTIES,
    "spec.source.propertiesFrom": [
        *([{"secretRef": {"name": name}}] for name in NAMES),
        *([], [{}], [{"secretRef": {"name": "a", "namespace": "b"}}], [{"secretRef": {"name": "a"}}] * 33),
    ],
    "spec.source.publishOffsetsTo": TEXTS,
    "spec.source.key": DECODINGS,
    "spec.source.value": DECODINGS,
    "spec.destination.bucket": [
        *("lake", "la", "Lake", "a..b", "10.0.0.1", "10.0.0.a", "s3://lake", "lake/raw", "-ab", "ab-", "a.b", "a_b"),
        *("x" * 63, "x" * 64, "lake\n", "läke"),
    ],
    "spec.destination.prefix": PREFIXES,
    "spec.destination.statePrefix": PREFIXES,
    "spec.destination.region": ["eu-central-1", "EU", "", "x" * 64, "x" * 65],
    "spec.destination.endpoint": URLS,
    "spec.destination.assumeRole": ROLES,
    "spec.destination.proxy": PROXIES,
    "spec.destination.timeouts": [
        {},
        *({"connect": text} for text in DURATIONS),
        *({"read": text} for text in DURATIONS),
    ],
    "spec.destination.acl": ["Private", "BucketOwnerFullControl", "bucket-owner-full-control", ""],
    "spec.destination": [
        {
            "bucket": "lake",
            "endpoint": url,
            "encryption": {"type": kind, **({"secretRef": {"name": "k"}} if secret else {})},
        }
        for url in (
            *("http://localhost:9000", "http://127.0.0.1/x", "http://[::1]:9", "HTTP://LOCALHOST", "https://s3"),
            *("http://s3", "http://localhost.example.com", "http://127.0.0.1.example.com", "http://127.1", "Http://s3"),
        )
        for kind, secret in (("CustomerKey", True), ("AES256", False))
    ],
    "spec.layout.topicNames": [
        *([{"topic": "orders", "as": topic}] for topic in TOPICS),
        *([{"topic": topic, "as": "x"}] for topic in TOPICS),
        [{"topic": "orders"}],
        [{"topic": "orders", "as": "x"}, {"topic": "orders", "as": "y"}],
        [{"topic": f"t{n}", "as": f"x{n}"} for n in range(250)],
        [{"topic": f"t{n}", "as": f"x{n}"} for n in range(251)],
        [{"topic": "orders", "as": ".s3sink"}],
    ],
    "spec.layout.topicReplacement": [
        {},
        *({"pattern": pattern, "replacement": "x"} for pattern in REGEXES),
        *(
            {"pattern": "-", "replacement": text}
            for text in ("", "_", "$1", "$10", "$", "$a", "a/b", "a b", "\\1", "x" * 249, "x" * 250)
        ),
    ],
    "spec.flush.timezone": ["UTC", "Europe/Berlin", "", "a b", "Etc/GMT+1", "x" * 64, "x" * 65],
    "spec.source.onUnroutedTopic": ["Default", "Fail", "fail"],
    "spec.format.envelope": [
        {"headersAs": "Map"},
        {"headersAs": "map"},
        {"keyAs": "Fields"},
        {"enabled": True, "keyAs": "Fields"},
        {"enabled": True, "keyAs": "Text"},
    ],
    "spec.destination.assumeRole.arn": [
        *(
            "",
            "admin",
            "arn:aws:iam::1:role/x",
            "arn:aws:iam::1:role/",
            "arn:aws:iam::a:role/x",
            "arn:aws:iam::1:role/a b",
        ),
        *("arn:aws-cn:iam::1:role/x/y", "arn:aws:iam::1:role/\x0b", "arn:aws:iam::1:role/é"),
    ],
    "spec.destination.encryption": ENCRYPTIONS,
    "spec.destination.storageClass": ["STANDARD_IA", "standard", "", "X" * 64, "X" * 65],
    "spec.destination.tags": TAGS,
    "spec.destination.partSize": AMOUNTS,
    "spec.destination.credentials": [{"secretRef": {"name": name}} for name in NAMES] + [{}, {"name": "a"}],
    "spec.layout.partitionBy": ITEMS,
    "spec.layout": LAYOUTS,
    "spec.layout.suffix": [
        "",
        "-a",
        "a/b",
        "a b",
        "x" * 64,
        "x" * 65,
        "é",
        "._=@,-",
        "-",
        "-g",
        "-gz",
        "-g2",
        "-2",
        "2",
        "_v1",
        "_2",
        "-000000000012",
        "_-0000000000123-x",
        "-00000000001",
        "_a",
        "a+b",
        "--g2",
    ],
    "spec.format": FORMATS,
    "spec.flush.bytes": AMOUNTS,
    "spec.flush.interval": DURATIONS,
    "spec.transform": [
        *(
            {},
            {"where": "a > 0"},
            {"where": "now() > a"},
            {"select": ["upper(a)"]},
            {"select": ["a", "b AS a"]},
            {"unwrap": "Debezium"},
            {"unwrap": "Maxwell"},
            {"debezium": {}, "where": "a"},
            {"unwrap": "Debezium", "debezium": {"deletes": "Drop", "addFields": []}},
            {"unwrap": "Debezium", "debezium": {"deletes": "Keep"}},
            {"steps": []},
            {"steps": [{"type": "Drop"}]},
            {"steps": [{"type": "Drop", "fields": ["a"], "to": "Int64"}]},
            {"steps": [{"type": "Cast", "fields": ["a"], "to": "Int8"}]},
            {"steps": [{"type": "Insert", "field": "a"}]},
            {"steps": [{"type": "Insert", "field": "a", "value": "b", "source": "Topic"}]},
            {"steps": [{"type": "Insert", "field": "a", "source": "Topic"}]},
            {"steps": [{"type": "Flatten"}, {"type": "Hoist", "field": "a"}, {"type": "Extract", "field": "a"}]},
            {"steps": [{"type": "Flatten"}] * 51},
            {"where": ""},
            {"where": "a\nb"},
            {"select": []},
            {"select": ["*"]},
            {"select": [""]},
        ),
        *({"select": ["*"] * 501}, {"where": "x" * 1024}, {"where": "x" * 4097}, {"where": "a", "select": ["b"]}),
    ],
    "spec.routes": ROUTES,
    "spec.errors.deadLetter": DEAD_LETTERS,
    "spec.errors.retries": [
        *({}, {"backoff": "2m"}, {"backoff": "1m"}, {"backoff": "61s"}, {"maxBackoff": "1ms"}, {"maxBackoff": "1x"}),
        *({"backoff": "2m", "maxBackoff": "120s"}, {"max": 0}, {"max": 1_000_001}),
    ],
    "spec.spark.image": ["", "x", "a b", "r.io/a/b:1@sha256:ab", "-x", "x" * 512, "x" * 513, "é"],
    "spec.spark.conf": CONF,
    "spec.spark.driver.cpuRequest": [*AMOUNTS, "500m", "0.5", 0.5, "1.2345", "1.123", "m", True],
    "spec.spark.driver.memory": AMOUNTS,
    "spec.spark.executor.spill": AMOUNTS,
    "spec.spark.driver.podTemplate": [{}, {"spec": {"x": [None, 1.5, {"y": "é"}]}}, [], "x"],
    "spec.spark.serviceAccountName": ["", *NAMES],
    "spec.spark.serviceAccountAnnotations": ANNOTATIONS,
}


def by_hand() -> Iterator[tuple[str, Document]]:
    """Every document of the table, with its field."""
    for path, values in BY_HAND.items():
        for value in values:
            yield path, put(routing() if path == "spec.routes" else minimal(), path, value)
    yield from _routes_that_inherit()
    yield from _layouts_of_records()
    once = put(minimal(), "spec.run", "Once")
    for end in [*STARTS, {"position": "Latest"}]:
        yield "spec.source.endingOffsets", put(once, "spec.source.endingOffsets", end)
    yield "spec.source.endingOffsets", put(minimal(), "spec.source.endingOffsets", {"position": "Latest"})
    for mode in ("Append", "FullRefresh"):
        for own in ({}, {"allowEmpty": True}, {"format": {"type": "Bytes"}}):
            yield "spec.mode", put(once, "spec", once["spec"] | {"mode": mode, **own})
    scheduled = put(minimal(), "spec.run", "Scheduled")
    for schedule in SCHEDULES:
        yield "spec.schedule", put(scheduled, "spec.schedule", schedule)
    without = minimal()
    del without["spec"]["source"]["topics"]
    for pattern in [*REGEXES, *TEXTS]:
        yield "spec.source.topicPattern", put(without, "spec.source.topicPattern", pattern)
    for name in ["", *NAMES, "a" * 52, "a" * 53, "a_b", "a/b", "0", "日本"]:
        yield "metadata.name", put(minimal(), "metadata.name", name)
    for path, value, _, _ in REFUSED:
        if path.startswith("spec"):
            yield path, put(minimal(), path, value)


def routing() -> Document:
    """A sink whose routes may name any topic."""
    return put(minimal(), "spec.source", {"bootstrapServers": "kafka:9092", "topicPattern": ".*"})


def _routes_that_inherit() -> Iterator[tuple[str, Document]]:
    for form in _FORMATS_OF_SINKS:
        for own in _FORMATS_OF_ROUTES:
            document = put(put(routing(), "spec.format", form), "spec.routes", [{"topics": ["a"], "format": own}])
            yield "spec.routes.format", document
    for layout in LAYOUTS:
        for own in ({"layout": {"hiveStyle": True}}, {"format": {"type": "Bytes"}}, {"layout": {"partitionBy": []}}):
            document = put(put(routing(), "spec.layout", layout), "spec.routes", [{"topics": ["a"], **own}])
            yield "spec.routes.layout", document
    for topic in ("orders", "payments"):
        for state in ("orders", "orders/x", "state", "a/b"):
            for prefix in ("", "orders", "a", "a/b", "a/b/c", "state2"):
                routes = [{"topics": [topic], "destination": {"prefix": prefix}}]
                document = put(minimal(), "spec.source.topics", ["orders", "payments"])
                document = put(document, "spec.destination", {"bucket": "lake", "prefix": "raw", "statePrefix": state})
                yield "spec.routes.destination", put(document, "spec.routes", routes)


def _layouts_of_records() -> Iterator[tuple[str, Document]]:
    items: list[Document] = [{"type": "Key"}, {"type": "Key", "path": ["a"]}, {"type": "Field", "path": ["a"]}]
    items += [{"type": "Header", "name": "a"}, _TIME, _TIME | {"source": "Field", "path": ["a"]}]
    for item in items:
        for part in ("key", "value"):
            for kind in ("String", "Bytes", "Json"):
                document = put(minimal(), "spec.layout.partitionBy", [item])
                yield "spec.source.format", put(document, f"spec.source.{part}.format", kind)
    for kind in ("Bytes", "Text"):
        for layout in ({"objectName": "Upload"}, {"partitionBy": [_TIME | {"source": "Wallclock"}]}):
            yield "spec.format.type", put(put(minimal(), "spec.layout", layout), "spec.format", {"type": kind})


def from_the_schema() -> Iterator[tuple[str, Document]]:
    """Wrong types, values next to the bounds, unknown fields and nulls, everywhere in the fullest manifest."""
    yield from _beside(SCHEMA, full(), ("spec",))


def _beside(schema: Any, document: Document, at: Steps) -> Iterator[tuple[str, Document]]:
    path = ".".join(map(str, at))
    for value in beside(schema):
        yield path, put(document, at, value)
    held: Any = document
    for step in at:
        held = held[step]
    if "properties" in schema:
        yield path, put(document, (*at, "nonsense"), 1)
        for name in schema.get("required", []):
            without = copy.deepcopy(held)
            without.pop(name, None)
            yield path, put(document, at, without)
    for name, inner in schema.get("properties", {}).items():
        if name in held:
            yield from _beside(inner, document, (*at, name))
    if "items" in schema:
        yield from _beside(schema["items"], document, (*at, 0))


def beside(schema: Any) -> list[Any]:
    """Values that a field of this schema may be given by mistake, and those at its bounds."""
    if schema.get("x-kubernetes-int-or-string"):
        return [True, [], None]
    match schema["type"]:
        case "boolean":
            return ["true", 1, None]
        case "integer":
            bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
            return [number + by for number in bounds for by in (-1, 0, 1)] + ["1", 1.5, None]
        case "string":
            values: list[Any] = [5, True, None, ["x"]]
            if "enum" in schema:
                return values + schema["enum"] + ["", schema["enum"][0].lower()]
            return [*values, "", "x" * (schema["maxLength"] + 1)] if schema["maxLength"] < 10_000 else values
        case "array":
            return ["x", {}, None, [None]]
        case _:
            return ["x", [], 5, None]


_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from([*TEXTS, *AMOUNTS, *DURATIONS, *PREFIXES, *URLS, *TOPICS, *INSTANTS, *NAMES, *SCHEDULES]),
)


def _values(name: str, schema: Any) -> st.SearchStrategy[Any]:
    """Mostly what the schema takes, whatever the rules say."""
    known = [value for path, values in BY_HAND.items() if path.endswith(f".{name}") for value in values]
    likely = [st.sampled_from(beside(schema)), _leaves] + ([st.sampled_from(known)] * 3 if known else [])
    if "properties" in schema:
        fields = {key: _values(key, inner) for key, inner in schema["properties"].items()}
        likely += [st.fixed_dictionaries({}, optional=fields)] * 3
    if "items" in schema:
        likely += [st.lists(_values(name, schema["items"]), max_size=3)] * 3
    return st.one_of(likely)


def _fields(schema: Any, at: Steps = ("spec",)) -> Iterator[tuple[Steps, Any]]:
    yield at, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _fields(inner, (*at, name))


_FIELDS = [(at, _values(str(at[-1]), schema)) for at, schema in _fields(SCHEMA) if len(at) > 1]


@st.composite
def manifests(draw: st.DrawFn) -> Document:
    """A valid manifest with up to three fields changed to anything."""
    document = draw(documents())
    for _ in range(draw(st.integers(0, 3))):
        at, values = draw(st.sampled_from(_FIELDS))
        if all(isinstance(held, dict) for held in _sections(document, at)):
            document = put(document, at, draw(values))
    return document


def _sections(document: Any, at: Steps) -> Iterator[Any]:
    """What stands on the way to a place, as far as it is there."""
    for step in at[:-1]:
        yield document
        if not isinstance(document, dict) or step not in document:
            return
        document = document[step]
    yield document
