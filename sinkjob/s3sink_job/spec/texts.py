"""Names, prefixes and addresses: what Kafka, S3 and Kubernetes accept, said before they refuse it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from s3sink_job.spec import patterns
from s3sink_job.spec.problems import Refusal

_USER_INFO = re.compile(patterns.USER_INFO)
TOPIC_LENGTH = 249
PREFIX_BYTES = 512


def has_user_info(text: str) -> bool:
    """Whether a URL in the text carries a user or a password."""
    return bool(_USER_INFO.search(text))


def matching(pattern: str, must_be: str, *, longest: int | None = None, ascii_only: bool = True) -> AfterValidator:
    compiled = re.compile(pattern, re.ASCII if ascii_only else re.UNICODE)

    def check(text: str) -> str:
        if longest is not None and len(text) > longest:
            raise Refusal(f"must have at most {longest} characters, got {len(text)}", show=False)
        if not compiled.fullmatch(text):
            raise Refusal(f"must be {must_be}")
        return text

    return AfterValidator(check)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _no_control(text: str) -> str:
    if not _fits(patterns.NO_CONTROL, text):
        raise Refusal("must not hold control characters or line breaks", show=False)
    return text


def _not_empty(text: str) -> str:
    if not text.strip():
        raise Refusal("must not be empty")
    return text


def _topic(name: str) -> str:
    if name in {".", ".."} or len(name) > TOPIC_LENGTH or not _fits(patterns.TOPIC, name):
        raise Refusal("must be a Kafka topic name: 1 to 249 letters, digits, dots, hyphens or underscores")
    return name


def _bucket(name: str) -> str:
    bare = name.removeprefix("s3://").split("/")[0]
    if bare != name:
        raise Refusal(f'must be the bucket\'s name alone, "{bare}"; the rest is destination.prefix', show=False)
    if not 3 <= len(name) <= 63:
        raise Refusal(f"must be a bucket name of 3 to 63 characters, got {len(name)}", show=False)
    if not _fits(patterns.BUCKET, name) or ".." in name:
        raise Refusal("must be a bucket name of lower-case letters, digits, hyphens and single dots")
    if _fits(patterns.IP_ADDRESS, name):
        raise Refusal("must be a bucket name, not an IP address")
    return name


def _prefix(text: str) -> str:
    _no_control(text)
    segments = [s for s in text.split("/") if s not in {"", ".", ".."}]
    if "/".join(segments) != text:
        instead = f'write "{"/".join(segments)}"'
        raise Refusal("must have no slash at either end and no empty, . or .. segment", hint=instead)
    if len(text.encode()) > PREFIX_BYTES:
        raise Refusal(f"must have at most {PREFIX_BYTES} bytes, since keys end at 1024", show=False)
    return text


def _servers(text: str) -> str:
    if not _fits(patterns.SERVERS, text):
        raise Refusal("must be host:port, or several with commas between, such as kafka:9092")
    return text


def _url(text: str) -> str:
    if has_user_info(text) or "@" in text.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0]:
        raise Refusal("must not carry a user or password; put them into a Secret", show=False)
    if "?" in text or "#" in text:
        raise Refusal("must be a URL without query or fragment", show=False)
    if not _fits(patterns.URL, text):
        raise Refusal("must be an http:// or https:// URL")
    return text


def _regex(text: str) -> str:
    # The pattern is Java's; only what neither dialect accepts is refused here.
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        if not re.search(r"\\[pPQEhHRXGzZk]|\(\?<|[*+?}]\+", text):
            raise Refusal(f"must be a regular expression ({error})") from None
    return text


def no_repeats(what: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    def check(items: tuple[str, ...]) -> tuple[str, ...]:
        for index, item in enumerate(items):
            if item in items[:index]:
                raise Refusal(f"names the {what} {item} a second time", at=(index,), show=False)
        return items

    return check


Text = Annotated[str, Field(max_length=4096), AfterValidator(_no_control), AfterValidator(_not_empty)]
ShortText = Annotated[str, Field(max_length=256), AfterValidator(_no_control), AfterValidator(_not_empty)]
TopicName = Annotated[str, AfterValidator(_topic)]
Bucket = Annotated[str, AfterValidator(_bucket)]
Prefix = Annotated[str, AfterValidator(_prefix)]
Servers = Annotated[str, Field(max_length=4096), AfterValidator(_servers)]
Url = Annotated[str, Field(max_length=2048), AfterValidator(_url)]
Regex = Annotated[Text, AfterValidator(_regex)]
Label = Annotated[
    str,
    matching(patterns.LABEL, "lower-case letters, digits and hyphens, a letter or digit at both ends", longest=63),
]
SinkName = Annotated[
    str,
    matching(patterns.LABEL, "lower-case letters, digits and hyphens, a letter or digit at both ends", longest=52),
]
ObjectName = Annotated[
    str,
    matching(
        rf"{patterns.LABEL}(\.{patterns.LABEL})*", "a Kubernetes name: lower-case letters, digits, - and .", longest=253
    ),
]
# What comes behind a name must not look like a part of it: an offset, a partition, a generation.
FileNamePart = Annotated[
    str,
    matching(
        r"((-[A-Za-fh-z._=@,-]|-g[A-Za-z._=@,-]|[A-Za-z.=@,])[A-Za-z0-9._=@,-]*|-g?)?",
        "letters, digits and . _ - = @ , only, and not begin with a digit, _, - and a digit, or -g and a digit",
        longest=64,
    ),
]
