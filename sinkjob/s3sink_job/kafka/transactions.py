"""Open transactions, which hold back the last stable offset, as brokers and transaction coordinators list them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError

from s3sink_job.base.times import iso
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.kafka.admin import Admin

# Idempotent producers are listed for a week. Only those with an open transaction have a start offset.
_PRODUCER = re.compile(
    r"ProducerState\(producerId=(\d+), producerEpoch=(-?\d+),[^()]*lastTimestamp=(-?\d+),"
    r"[^()]*currentTransactionStartOffset=OptionalLong\[(\d+)\]\)"
)
_LISTING = re.compile(r"TransactionListing\(transactionalId='(.*?)', producerId=(\d+), ")


@dataclass(frozen=True)
class OpenTransaction:
    """`last`: the time of the producer's last record. Id, start and timeout come from the coordinator."""

    at: TopicPartition
    start: int
    producer_id: int
    epoch: int
    last: float
    transactional_id: str = ""
    began: float | None = None
    timeout: float | None = None

    def describe(self, servers: str) -> str:
        """Which transaction, since when, and what to do."""
        topic, partition = self.at
        who = f"producer id {self.producer_id}, epoch {self.epoch}"
        if self.transactional_id:
            who = f"transactional id {self.transactional_id}, {who}"
        since = f"since {iso(self.began)}" if self.began else f"last record at {iso(self.last)}"
        tool = f"kafka-transactions.sh --bootstrap-server {servers}"
        abort = f"`{tool} abort --topic {topic} --partition {partition} --start-offset {self.start}`"
        if self.transactional_id:
            late = f" after its timeout of {self.timeout:g} s" if self.timeout else ""
            todo = f"its producer has to end it, or the brokers abort it{late}. If neither happens, run {abort}"
        else:
            todo = f"no coordinator knows its producer. If `{tool} find-hanging` lists it, run {abort}"
        return f"{topic}-{partition}: open transaction from offset {self.start} on ({who}; {since}): {todo}"


def first_open_transactions(admin: Admin, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """The first open transaction of each partition: the one that holds back its last stable offset.

    Empty if the brokers do not support the request or the user may not send it.
    """
    found = []
    keys = {at: admin.partition(at) for at in partitions}
    options = admin.short_timeout("DescribeProducersOptions")
    answer = admin.client.describeProducers(admin.java_list(keys.values()), options)
    for at, key in keys.items():
        try:
            text = str(answer.partitionResult(key).get().activeProducers().toString())
        except Py4JJavaError:
            continue
        open_here = [tuple(map(int, numbers)) for numbers in _PRODUCER.findall(text)]
        if open_here:
            producer_id, epoch, last, start = min(open_here, key=lambda p: p[3])
            found.append(OpenTransaction(at, start, producer_id, epoch, last / 1000))
    return _with_ids(admin, found) if found else []


def _with_ids(admin: Admin, found: list[OpenTransaction]) -> list[OpenTransaction]:
    try:
        listed = _transactional_ids(admin)
    except Py4JJavaError:
        return found
    return [_with_details(admin, one, listed[one.producer_id]) if one.producer_id in listed else one for one in found]


def _transactional_ids(admin: Admin) -> dict[int, str]:
    state = admin.jvm.org.apache.kafka.clients.admin.TransactionState
    unfinished = admin.java_list([state.ONGOING, state.PREPARE_COMMIT, state.PREPARE_ABORT])
    options = admin.short_timeout("ListTransactionsOptions").filterStates(unfinished)
    text = str(admin.client.listTransactions(options).all().get().toString())
    return {int(producer): name for name, producer in _LISTING.findall(text)}


def _with_details(admin: Admin, one: OpenTransaction, transactional_id: str) -> OpenTransaction:
    one = replace(one, transactional_id=transactional_id)
    options = admin.short_timeout("DescribeTransactionsOptions")
    try:
        described = admin.client.describeTransactions(admin.java_list([transactional_id]), options)
        answer = described.description(transactional_id).get()
    except Py4JJavaError:
        return one  # without permission for more, the id alone is of use
    began = float(answer.transactionStartTimeMs().orElse(0)) / 1000 or None
    return replace(one, began=began, timeout=float(answer.transactionTimeoutMs()) / 1000)
