"""Prometheus metrics. Their names are a public interface: see docs/metrics.md.

A new metric is a line here, a row in docs/metrics.md, and the place that sets it.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PARTITION = ("topic", "partition")
DURATIONS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge, histogram = self._counter, self._gauge, self._histogram
        self.records = counter("s3sink_records", "Records in published objects", PARTITION)
        self.bytes = counter("s3sink_bytes", "Bytes of published objects, as written", PARTITION)
        self.objects = counter("s3sink_objects", "Published objects", PARTITION)
        self.flushes = counter("s3sink_flushes", "Committed slices, by the rule that made them due", ("reason",))
        self.flush_seconds = histogram("s3sink_flush_duration_seconds", "From start to visible objects of a flush")
        self.last_flush = gauge("s3sink_last_flush_timestamp_seconds", "When the last flush was published")
        self.retries = counter("s3sink_flush_retries", "Flushes that failed and are retried", ("reason",))
        self.request_retries = counter("s3sink_request_retries", "S3 requests that were retried")
        self.throttled = counter("s3sink_throttled_requests", "S3 requests that the store throttled")
        self.share = gauge("s3sink_requests_at_a_time", "S3 requests that a task may have in flight")
        self.errors = counter("s3sink_errors", "Failures, by reason", ("reason",))
        self.skipped = counter("s3sink_skipped_records", "Bad records skipped by errors.records: Skip", PARTITION)
        self.letters = counter("s3sink_dead_lettered_records", "Bad records that became dead letters", PARTITION)
        self.filtered = counter("s3sink_filtered_records", "Records that the transform left out", PARTITION)
        self.unknown_fields = counter(
            "s3sink_unknown_fields", "Values left out because the Protobuf schema has no field for them", PARTITION
        )
        self.gaps = counter("s3sink_gap_offsets", "Offsets lost in Kafka before they were written", PARTITION)
        self.removed = counter("s3sink_removed_objects", "Objects that a full refresh replaced and removed")
        self.unremoved = gauge("s3sink_unremoved_objects", "Replaced objects that the store refused to delete")
        self.lag = gauge("s3sink_lag_records", "Readable offsets that are not committed yet", PARTITION)
        self.lag_end = gauge(
            "s3sink_lag_to_high_watermark_records",
            "Offsets up to the high watermark that are not committed yet",
            PARTITION,
        )
        self.oldest = gauge("s3sink_oldest_unflushed_seconds", "How long the partition has been behind", PARTITION)
        self.committed = gauge("s3sink_committed_offset", "The next offset to write", PARTITION)
        self.epoch = gauge("s3sink_epoch", "The driver's epoch, which rises with each takeover")
        self.up = gauge("s3sink_up", "1 while the driver runs without a failure, 0 while it has one")

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=DURATIONS)
