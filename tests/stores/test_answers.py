"""How answers of a store are classified: by code, since some transient errors have the status 400."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from s3sink_job.base.errors import FinalError
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import KeyRefused, StoreRefused, StoreUnavailable, Throttled
from s3sink_job.stores.s3.errors import translate
from tools.parts.proxy import FaultProxy, Status, request_is

PASSING = ["RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "InternalError"]
THROTTLING = [
    *("SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException", "KMS.ThrottlingException"),
    *("ThrottledException", "RequestThrottled", "RequestLimitExceeded", "TooManyRequests", "TooManyRequestsException"),
    *("BandwidthLimitExceeded", "userRateLimitExceeded", "Slow_Down", "TotalQpsLimitExceeded"),
]


def meaning(code: str, status: int = 400) -> Exception:
    answer = {"Error": {"Code": code, "Message": "…"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return translate(ClientError(answer, "PutObject"), "PutObject s3://lake/k")  # type: ignore[arg-type]


@pytest.mark.parametrize("code", PASSING)
def test_a_transient_error_is_retried_whatever_its_status(code: str, through: Bucket, proxy: FaultProxy) -> None:
    rule = proxy.on(request_is("PUT"), Status(400, code), times=2)

    through.put("k", b"x")

    assert rule.hits == 2
    assert through.limit.throttled == 0


@pytest.mark.parametrize("code", THROTTLING)
@pytest.mark.parametrize("status", [400, 403, 503])
def test_throttling_is_recognised_in_all_its_spellings(code: str, status: int) -> None:
    assert isinstance(meaning(code, status), Throttled)


@pytest.mark.parametrize(("code", "status"), [("429", 429), ("503", 503)])
def test_a_head_without_a_code_is_throttled_by_its_status(code: str, status: int) -> None:
    assert isinstance(meaning(code, status), Throttled)


@pytest.mark.parametrize("code", ["InvalidStorageClass", "InvalidArgument", "EntityTooLarge", "KMS.NotFoundException"])
def test_errors_that_a_retry_cannot_fix_are_final(code: str) -> None:
    assert isinstance(meaning(code), StoreRefused)
    assert not isinstance(meaning(code), StoreUnavailable)


def test_a_wrong_clock_is_reported_as_such() -> None:
    error = meaning("RequestTimeTooSkewed", 403)
    assert isinstance(error, FinalError)
    assert (error.reason, error.retryable) == ("ClockSkewed", False)
    assert "clock" in str(error)


def test_only_the_first_request_of_an_object_shows_whether_its_key_is_refused(
    through: Bucket, proxy: FaultProxy
) -> None:
    proxy.on(request_is("POST", query="uploads"), Status(400, "XMinioInvalidObjectName"), times=2)
    proxy.on(request_is("PUT", query="partNumber"), Status(400, "InvalidRequest"), times=1)
    with pytest.raises(KeyRefused, match="XMinioInvalidObjectName"):
        through.create_upload("k", {}, "text/plain")
    upload_id = through.create_upload("k", {}, "text/plain")
    with pytest.raises(StoreRefused) as caught:
        through.upload_part("k", upload_id, 1, b"x")
    assert not isinstance(caught.value, KeyRefused)


def test_a_refusal_that_goes_away_is_not_blamed_on_the_key(through: Bucket, proxy: FaultProxy) -> None:
    proxy.on(request_is("POST", query="uploads"), Status(400, "KMS.DisabledForAMoment"), times=1)

    through.abort_upload("k", through.create_upload("k", {}, "text/plain"))


def test_an_answer_without_an_error_code_is_transient() -> None:
    for code, status in (("404", 404), ("", 400)):
        assert isinstance(meaning(code, status), StoreUnavailable)
