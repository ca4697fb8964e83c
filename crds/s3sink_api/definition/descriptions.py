"""A sentence for every field, for `kubectl explain`. A field of a route has the sentence of the field it overrides."""

from __future__ import annotations

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Spec": {
        "source": "The Kafka topics, where to start, and how keys and values are decoded.",
        "destination": "The bucket, how to reach it, and how objects are stored in it.",
        "state": "Running, Paused (the driver runs and flushes nothing) or Stopped (no pods), whatever run says.",
        "run": "Continuous, Once (writes up to the end offsets seen at its start, then completes) or Scheduled.",
        "schedule": "With run Scheduled: when to run, as a cron schedule.",
        "mode": "Append, or FullRefresh with run Once or Scheduled: each run replaces what the sink wrote before.",
        "reset": "Starts every topic again, as its next generation. Written objects stay. Each nonce works once.",
        "layout": "The folders and names of objects.",
        "format": "What is inside the objects, and how it is compressed.",
        "flush": "When a topic-partition is flushed: by the first rule that applies.",
        "delivery": "The guarantee to require. ExactlyOnce fails on a store without conditional writes.",
        "nullValues": "What to do with tombstones, records without a value.",
        "transform": "What changes between decoding and writing: unwrap, then steps, then where, then select.",
        "routes": "Topics with a decoding, destination, layout, format or flush of their own. The rest is inherited.",
        "errors": "What to do with records that cannot be written, and how to retry.",
        "spark": "The pods that the job runs in.",
    },
    "Reset": {
        "nonce": "Any text. A nonce that this sink has not used yet triggers the reset.",
        "to": "Where the partitions that exist at that time start. Others start at the earliest offset.",
    },
    "Transform": {
        "unwrap": "Debezium: the row in a change event instead of the event.",
        "debezium": "With unwrap Debezium: what to do with deletes, and which fields of the event to keep.",
        "steps": "Changes of fields, one after another, as Kafka Connect's transformations make them.",
        "where": "A SQL condition of DuckDB. Records for which it is not true are left out, and counted as filtered.",
        "select": "SQL expressions of DuckDB, one for each column: *, fields, or an expression with AS and a name.",
    },
    "Debezium": {
        "deletes": "Rows (the row before, with __deleted), Drop (left out) or Tombstones (a null value).",
        "addFields": "Fields of the event that become columns with __ before their name, such as source.ts_ms.",
    },
    "Step": {
        "type": "What the step does: Drop, Rename, Mask, Insert, Cast, Flatten, Hoist or Extract.",
        "fields": "With Drop, Mask and Cast: the fields. One that a record does not have changes nothing.",
        "field": "With Rename and Extract: the field. With Insert and Hoist: the new field.",
        "as": "With Rename: the new name.",
        "replacement": "With Mask: the text or number instead of the value. If absent: empty, 0 or false.",
        "value": "With Insert: a fixed text.",
        "source": "With Insert: what of the record: Topic, Partition, Offset or Timestamp.",
        "to": "With Cast: the type.",
        "separator": "With Flatten: between the names. A dot if absent.",
    },
    "Source": {
        "bootstrapServers": "The brokers as host:port, several separated by commas.",
        "topics": "The topics to copy. Topics that are added later start at their earliest offset.",
        "topicPattern": "A Java regular expression for whole topic names, instead of topics.",
        "startingOffsets": "Where to start when the sink runs for the first time. Not used again afterwards.",
        "endingOffsets": "With run: Once: where the run ends. It is fixed when the run starts, and restarts keep it.",
        "onDataLoss": "If Kafka deleted records before they were written: Fail, or Skip and record the gap.",
        "isolation": "Whether records of open and aborted transactions are read, too.",
        "maxBytesPerSecond": "The most bytes to read per second, to protect the brokers during a backlog.",
        "properties": "Kafka client properties by their Java names. Secrets and class names are refused.",
        "propertiesFrom": "Secrets whose keys are property names, for SASL and TLS. They override properties.",
        "publishOffsetsTo": "A consumer group to which the committed offsets are copied, for tools that show lag.",
        "key": "How keys are decoded.",
        "value": "How values are decoded.",
    },
    "StartingOffsets": {
        "position": "Earliest, Latest, Timestamp or Offsets.",
        "timestamp": "With Timestamp: starts at the first record at or after it, or at the end if there is none.",
        "offsets": "With Offsets: where the listed partitions start. Others start at the earliest offset.",
    },
    "EndingOffsets": {
        "position": "Latest, Timestamp or Offsets.",
        "timestamp": "With Timestamp: ends before the first record at or after it. It must not be in the future.",
        "offsets": "With Offsets: the first offset that is not written. Partitions not listed end as with Latest.",
    },
    "TopicOffset": {
        "topic": "The topic.",
        "partition": "The partition.",
        "offset": "Of a start, the first offset to write. Of an end, the first one not to write.",
    },
    "Decoding": {
        "format": "The serialization. Avro, Protobuf and JsonSchema use the wire format of the schema registry.",
        "schemaRegistry": "The registry that holds the schemas. Records begin with the id of theirs.",
        "schema": "An inline schema. Without one, columns of Json are inferred. Of Protobuf the first message counts.",
        "validate": "With JsonSchema: refuse records that are not valid by their schema.",
        "times": "With JsonSchema: Typed makes columns of dates and times, AsWritten keeps their text.",
    },
    "SchemaRegistry": {
        "type": "Confluent: its REST interface, also of Karapace and Apicurio (/apis/ccompat/v7). Glue: AWS Glue.",
        "url": "With Confluent: the registry's address.",
        "region": "With Glue: the region. If absent, that of the pod's environment.",
        "endpoint": "With Glue: the URL of a VPC endpoint or a proxy. AWS' own if absent.",
        "credentialsFrom": "The Secret with username and password, or with token. "
        "With Glue: with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS' default chain if absent.",
        "caFrom": "The Secret with the CA of its certificate, under ca.crt.",
        "certFrom": "With Confluent: the Secret with the sink's own certificate, under tls.crt and tls.key.",
    },
    "SecretSource": {"secretRef": "A Secret of the sink's own namespace."},
    "SecretRef": {"name": "The Secret's name."},
    "Destination": {
        "bucket": "The name of the bucket, which must exist.",
        "prefix": "The folder of the data in the bucket.",
        "statePrefix": "The folder of the sink's state in the same bucket, outside of prefix.",
        "region": "The bucket's region.",
        "endpoint": "The URL of an S3-compatible store. AWS if absent.",
        "caFrom": "The Secret with the CA of the endpoint's certificate, under ca.crt.",
        "pathStyle": "Whether URLs have the bucket in the path, not in the host name. True with an endpoint.",
        "credentials": "The Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. AWS' default chain if absent.",
        "assumeRoleArn": "A role to assume before any request.",
        "encryption": "Server-side encryption of data and state. The default of the bucket if absent.",
        "storageClass": "The storage class of data objects.",
        "tags": "Tags of data objects.",
        "maxConnections": "The most connections to the store from each process.",
        "partSize": "The size of upload parts. Each task keeps one in memory.",
    },
    "Encryption": {
        "type": "AES256, KMS or CustomerKey.",
        "keyId": "With KMS: the key.",
        "secretRef": "With CustomerKey: the Secret that holds the key.",
    },
    "Layout": {
        "partitionBy": "The folders, from the outermost to the innermost. Topic and Partition if absent.",
        "hiveStyle": "Whether folders are named name=value instead of just the value.",
        "onMissingValue": "For records without the value: Default (__HIVE_DEFAULT_PARTITION__), Fail or DeadLetter.",
        "objectName": "The style of object names: Offset, Confluent, Lenses or Upload.",
        "padding": "How many digits numbers in names have, with zeros on the left.",
        "suffix": "Text behind the name, before the extension.",
        "extension": "The extension. By format and codec if absent.",
    },
    "PartitionItem": {
        "type": "What makes the folder: Topic, Partition, Field, Key, Header or Time.",
        "path": "The field, as a list of names from the outside in.",
        "as": "With hiveStyle: the name in name=value. A Topic without one is the value alone.",
        "name": "With Header: the header's name.",
        "source": "With Time: Record, Wallclock or Field.",
        "format": "With Time: a Java date pattern such as 'year='yyyy/'month='MM.",
        "timezone": "With Time: the time zone of the pattern. UTC if absent.",
        "locale": "With Time: the locale of the pattern.",
        "every": "With Time: the length of a window.",
    },
    "Padding": {"offset": "Digits of offsets. By the style of names if absent.", "partition": "Digits of partitions."},
    "Format": {
        "type": "The format of the objects.",
        "compression": "The codec. If absent: Zstd for Parquet, Avro and Orc, None for others.",
        "csv": "Options of Csv.",
        "parquet": "Options of Parquet.",
        "columns": "Columns that are added to those of the value.",
        "envelope": "Writes key, value, headers and metadata as one record, so that it can be restored.",
        "schemaEvolution": "What to do when the schema of records changes.",
    },
    "Compression": {"codec": "The codec. Each format supports some of them.", "level": "The codec's level."},
    "Csv": {
        "header": "Whether objects start with the names of the columns.",
        "delimiter": "One character between values.",
        "quote": "Which values are quoted.",
    },
    "Parquet": {
        "rowGroupBytes": "The size of row groups.",
        "dictionary": "Whether columns with repeated values are dictionary-encoded.",
        "statistics": "Whether column statistics are written.",
    },
    "Columns": {
        "meta": "Where a record came from: None, Kafka, Quix or Airbyte columns.",
        "flatten": "With Airbyte: the value's fields as columns of their own instead of _airbyte_data.",
    },
    "Envelope": {
        "enabled": "Whether records are wrapped.",
        "key": "Whether the key is in it.",
        "value": "Whether the value is in it.",
        "headers": "Whether the headers are in it.",
        "metadata": "Whether topic, partition, offset and timestamp are in it.",
    },
    "SchemaEvolution": {
        "mode": "Which changes of the schemas of records are taken: None, Backward, Forward or Full.",
        "onChange": "Merge (versions share objects) or Roll (each change begins a new object).",
    },
    "Flush": {
        "records": "Flushes after this many offsets. Objects have at most this many records.",
        "bytes": "Flushes when the object would have this many bytes, as written.",
        "interval": "Flushes when records have waited for this long.",
        "aligned": "Flushes at multiples of this on the clock.",
        "recordWindow": "No object has records of two of these windows of record time.",
    },
    "Route": {
        "topics": "The topics of the route, which no other route may name. Set this or topicPattern.",
        "topicPattern": "A Java regular expression for whole topic names. A topic that matches two routes is not read.",
        "source": "How their keys and values are decoded.",
        "destination": "Where their objects are stored.",
        "layout": "The folders and names of their objects.",
        "format": "What is inside their objects.",
        "flush": "When they are flushed.",
        "transform": 'A transform of its own, instead of the sink\'s. With select ["*"] values stay as they are.',
    },
    "Errors": {
        "records": "What to do with a record that cannot be written: Fail, Skip or DeadLetter.",
        "maxPerFlush": "A partition stops if a flush of it has more bad records than this.",
        "maxPercent": "A partition stops if a flush of at least 1,000 records has a larger share of bad records.",
        "deadLetter": "Where bad records are written, with their error.",
        "logRecords": "Whether the content of bad records is logged.",
        "retries": "Retries of a whole flush. Afterwards the sink is Degraded and keeps trying.",
        "requestRetries": "Retries of a single request, to S3 or to a schema registry.",
    },
    "DeadLetter": {
        "prefix": "A folder of the bucket. Set this or topic.",
        "topic": "A Kafka topic.",
        "format": "The format of the objects below prefix: Parquet or Json. Parquet if absent.",
        "replicationFactor": "The replication factor of the topic, if it is created. The brokers' default if absent.",
        "headers": "Whether the error is written into headers of records in the topic. True if absent.",
    },
    "Retries": {
        "max": "Failures in a row before the sink is Degraded, or a run with an end fails.",
        "backoff": "The first wait, doubled each time.",
        "maxBackoff": "The longest wait.",
    },
    "RequestRetries": {"max": "How often a request is retried.", "backoff": "The first wait, doubled each time."},
    "Spark": {
        "mode": "Local (one pod) or Cluster (executor pods beside the driver).",
        "image": "The image of driver and executors. That of the operator if absent.",
        "driver": "The driver's pod.",
        "executor": "The executors' pods, in Cluster mode.",
        "conf": "Spark settings. Those that could take over the pod or break the delivery guarantee are refused.",
        "serviceAccountName": "An existing ServiceAccount for the pods. One is created if absent.",
        "serviceAccountAnnotations": "Annotations of the ServiceAccounts that are created, such as a cloud role.",
    },
    "DriverPod": {
        "cores": "Tasks at a time in Local mode.",
        "cpuRequest": "The pod's CPU request.",
        "memory": "The pod's memory limit. The Java heap follows from it.",
        "spill": "The limit of its temporary storage.",
        "podTemplate": "Tolerations, node selectors and the like, merged into the pod.",
    },
    "ExecutorPod": {
        "instances": "The most executors. `kubectl scale` changes it.",
        "cores": "Tasks at a time in each.",
        "cpuRequest": "Each pod's CPU request.",
        "memory": "Each pod's memory limit. The Java heap follows from it.",
        "spill": "The limit of each pod's temporary storage.",
        "podTemplate": "Tolerations, node selectors and the like, merged into the pods.",
        "scaleToZero": "Whether executors are removed between flushes and started for the next one.",
    },
}
_SAME_AS = dict.fromkeys(("Key", "Value"), "Decoding")
_SAME_AS |= dict.fromkeys(("FromEarliest", "FromLatest", "FromTimestamp", "FromOffsets"), "StartingOffsets")
_SAME_AS |= dict.fromkeys(("ToLatest", "ToTimestamp", "ToOffsets"), "EndingOffsets")
_SAME_AS |= dict.fromkeys(("Aes256", "Kms", "CustomerKey"), "Encryption")
_SAME_AS |= dict.fromkeys(("ByTopic", "ByPartition", "ByField", "ByKey", "ByHeader", "ByTime"), "PartitionItem")
_SAME_AS |= dict.fromkeys(("Drop", "Rename", "Mask", "Insert", "Cast", "Flatten", "Hoist", "Extract"), "Step")


def described(section: str, field: str) -> str:
    """KeyError for a field without a sentence."""
    name = _SAME_AS.get(section, section)
    if name not in DESCRIPTIONS and name.startswith("Route"):
        name = name.removeprefix("Route")
    return DESCRIPTIONS[name][field]
