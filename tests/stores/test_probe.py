"""What the probe finds out about a store."""

from __future__ import annotations

from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.probe import ProbeResult, probe
from tools.parts.proxy import ChangeAnswer, FaultProxy, Status, StripHeaders, request_is
from tools.parts.s3 import S3Server

NO_METADATA = ChangeAnswer(lambda name, value: None if name.startswith("x-amz-meta-") else value)


def left(bucket: Bucket) -> list[str]:
    return [key for key, _ in bucket.list("")] + [u.key for u in bucket.list_uploads("")]


def test_a_good_store_passes_and_nothing_is_left_behind(loose: Bucket) -> None:
    assert probe(loose, "state") == ProbeResult()
    assert left(loose) == []


def test_writers_that_all_win_with_the_same_etag_are_found(loose: Bucket, unsigned: FaultProxy) -> None:
    """The store respects If-Match for sequential writes, but not for concurrent ones. The first two are sequential."""
    swaps = request_is("PUT", path="/probe/", header="if-match")
    unsigned.on(swaps, StripHeaders({"if-match"}), skip=2)

    found = probe(loose, "state")

    assert (found.fault, found.reason) == (
        "8 of 8 concurrent writers with If-Match and the same ETag succeeded",
        "NoConditionalWrites",
    )
    assert left(loose) == []


def test_metadata_that_does_not_come_back_is_found(through: Bucket, proxy: FaultProxy) -> None:
    proxy.on(request_is("HEAD"), NO_METADATA)

    found = probe(through, "state")

    assert found.fault is not None
    assert "an upload had the metadata s3sink-flush: probe, and HEAD of the object returned ''" in found.fault
    assert found.reason == "NoMetadata"
    assert left(through) == []


def test_metadata_of_objects_without_parts_is_probed_separately(through: Bucket, proxy: FaultProxy) -> None:
    """Objects of format Bytes are put, not uploaded in parts."""
    proxy.on(request_is("HEAD", path="-tagged$"), NO_METADATA)

    found = probe(through, "state")

    assert found.fault is not None
    assert found.fault.startswith("PUT had the metadata")
    assert found.reason == "NoMetadata"


def test_an_unexpected_answer_to_completing_twice_is_found(through: Bucket, proxy: FaultProxy) -> None:
    proxy.on(request_is("POST", path="-twice$", query="uploadId="), Status(400, "InvalidRequest"), skip=1)

    found = probe(through, "state")

    assert found.fault is not None
    assert "completing an upload a second time" in found.fault
    assert "InvalidRequest" in found.fault


def test_the_limit_of_a_store_that_keeps_objects_as_files_is_found(through: Bucket, s3: S3Server) -> None:
    assert probe(through, "state").longest_segment == 255
    through.put("x" * 255, b"x")
    assert [key for key, _ in through.list("")] == ["x" * 255]


def test_a_transient_error_is_not_mistaken_for_a_limit_of_names(loose: Bucket, unsigned: FaultProxy) -> None:
    rule = unsigned.on(request_is("PUT", path="x{100}"), Status(500), times=2)

    assert probe(loose, "state") == ProbeResult()
    assert rule.hits == 2
