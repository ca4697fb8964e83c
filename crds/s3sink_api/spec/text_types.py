"""Types of text: names, prefixes and addresses, as Kafka, S3 and Kubernetes accept them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from s3sink_api.cel import Cel, fits, literal, matches
from s3sink_api.spec import regexes
from s3sink_api.spec.checked_types import Checked, after
from s3sink_api.spec.field_errors import Refusal

_USER_INFO = re.compile(regexes.USER_INFO)
_TOPIC_LENGTH = 249
_PREFIX_BYTES = 512


def has_user_info(text: str) -> bool:
    """Whether a URL in the text contains a user or a password."""
    return bool(_USER_INFO.search(text))


def no_user_info(message: str) -> Cel:
    return Cel(lambda it: f"!{it}.matches({literal(regexes.USER_INFO)})", message, "FieldValueForbidden")


def matching(pattern: str, must_be: str, *, longest: int | None = None, ascii_only: bool = True) -> Checked:
    compiled = re.compile(pattern, re.ASCII if ascii_only else re.UNICODE)

    def check(text: str) -> str:
        if longest is not None and len(text) > longest:
            raise Refusal(f"must have at most {longest} characters, got {len(text)}", show=False)
        if not compiled.fullmatch(text):
            raise Refusal(f"must be {must_be}")
        return text

    # In RE2 \w stands for ASCII letters only.
    in_re2 = pattern if ascii_only else pattern.replace(r"\w", r"\p{L}\p{N}_")
    limit = {} if longest is None else {"maxLength": longest}
    return after(check, matches(in_re2, f"must be {must_be}"), **limit)


def no_repeats(what: str) -> Checked:
    def check(items: tuple[str, ...]) -> tuple[str, ...]:
        for index, item in enumerate(items):
            if item in items[:index]:
                raise Refusal(f"names the {what} {item} a second time", at=(index,), show=False)
        return items

    return after(check, **{"x-kubernetes-list-type": "set"})


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


_CONTROL_MESSAGE = "must not contain control characters or line breaks"
_CONTROL_CEL = matches(regexes.NO_CONTROL, _CONTROL_MESSAGE)


def _no_control(text: str) -> str:
    if not _fits(regexes.NO_CONTROL, text):
        raise Refusal(_CONTROL_MESSAGE, show=False)
    return text


def _not_empty(text: str) -> str:
    if not text.strip():
        raise Refusal("must not be empty")
    return text


_NO_CONTROL = after(_no_control, _CONTROL_CEL)
_NOT_EMPTY = after(_not_empty, Cel(lambda it: f"{it}.trim() != ''", "must not be empty"))
Text = Annotated[str, Field(max_length=4096), _NO_CONTROL, _NOT_EMPTY]
ShortText = Annotated[str, Field(max_length=256), _NO_CONTROL, _NOT_EMPTY]


def _regex(text: str) -> str:
    # The pattern is Java's. Only what neither Java nor Python accepts is refused here; CEL cannot judge it at all.
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        if not re.search(r"\\[pPQEhHRXGzZk]|\(\?<|[*+?}]\+", text):
            raise Refusal(f"must be a regular expression ({error})") from None
    return text


Regex = Annotated[Text, after(_regex)]

_TOPIC_MESSAGE = "must be a Kafka topic name: 1 to 249 letters, digits, dots, hyphens or underscores"


def _topic(name: str) -> str:
    if name in {".", ".."} or len(name) > _TOPIC_LENGTH or not _fits(regexes.TOPIC, name):
        raise Refusal(_TOPIC_MESSAGE)
    return name


TopicName = Annotated[
    str,
    after(
        _topic,
        Cel(lambda it: f"!{it}.matches({literal(regexes.NOT_OF_TOPICS)})", _TOPIC_MESSAGE),
        Cel(lambda it: f"!({it} in ['.', '..'])", _TOPIC_MESSAGE),
        minLength=1,
        maxLength=_TOPIC_LENGTH,
    ),
]

_BUCKET_MESSAGE = "must be a bucket name of lower-case letters, digits, hyphens and single dots"

_IP_ADDRESS_MESSAGE = "must be a bucket name, not an IP address"


def _bucket(name: str) -> str:
    bare = name.removeprefix("s3://").split("/")[0]
    if bare != name:
        raise Refusal(f'must be the bucket name only, "{bare}"; the rest is destination.prefix', show=False)
    if not 3 <= len(name) <= 63:
        raise Refusal(f"must be a bucket name of 3 to 63 characters, got {len(name)}", show=False)
    if not _fits(regexes.BUCKET, name) or ".." in name:
        raise Refusal(_BUCKET_MESSAGE)
    if _fits(regexes.IP_ADDRESS, name):
        raise Refusal(_IP_ADDRESS_MESSAGE)
    return name


Bucket = Annotated[
    str,
    after(
        _bucket,
        Cel(lambda it: f"!{it}.contains('/')", "must be the bucket name only; the rest is destination.prefix"),
        Cel(
            lambda it: f"{it}.contains('/') || ({fits(it, regexes.BUCKET)} && !{it}.contains('..'))",
            _BUCKET_MESSAGE,
        ),
        Cel(
            lambda it: f"!{it}.matches({literal(f'^{regexes.IP_ADDRESS}$')})",
            _IP_ADDRESS_MESSAGE,
        ),
        minLength=3,
        maxLength=63,
    ),
]

_PREFIX_MESSAGE = "must have no slash at either end and no empty, . or .. segment"


def _prefix(text: str) -> str:
    _no_control(text)
    segments = [s for s in text.split("/") if s not in {"", ".", ".."}]
    if "/".join(segments) != text:
        raise Refusal(_PREFIX_MESSAGE, hint=f'write "{"/".join(segments)}"')
    if len(text.encode()) > _PREFIX_BYTES:
        raise Refusal(f"must have at most {_PREFIX_BYTES} bytes, since S3 keys have at most 1024", show=False)
    return text


Prefix = Annotated[
    str,
    after(
        _prefix,
        _CONTROL_CEL,
        Cel(lambda it: f"{it} == '' || {it}.split('/').all(s, !(s in ['', '.', '..']))", _PREFIX_MESSAGE),
        Cel(
            lambda it: f"size(bytes({it})) <= {_PREFIX_BYTES}",
            f"must have at most {_PREFIX_BYTES} bytes, since S3 keys have at most 1024",
        ),
        minLength=0,
        maxLength=_PREFIX_BYTES,
    ),
]

_SERVERS_MESSAGE = "must be host:port, or several separated by commas, such as kafka:9092"
_NO_LOGIN = Cel(
    lambda it: f"!{it}.contains('@')",
    "must not contain a user or password; put them into a Secret",
    "FieldValueForbidden",
)


def _servers(text: str) -> str:
    if not _fits(regexes.SERVERS, text):
        raise Refusal(_SERVERS_MESSAGE)
    return text


Servers = Annotated[
    str,
    Field(max_length=4096),
    after(
        _servers,
        _NO_LOGIN,
        Cel(lambda it: f"{it}.contains('@') || {fits(it, regexes.SERVERS)}", _SERVERS_MESSAGE),
    ),
]


def _url(text: str) -> str:
    if has_user_info(text) or "@" in text.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0]:
        raise Refusal(_NO_LOGIN.message, show=False)
    if "?" in text or "#" in text:
        raise Refusal("must be a URL without query or fragment", show=False)
    if not _fits(regexes.URL, text):
        raise Refusal("must be an http:// or https:// URL")
    return text


Url = Annotated[
    str,
    Field(max_length=2048),
    after(
        _url,
        _NO_LOGIN,
        Cel(
            lambda it: f"!{it}.contains('?') && !{it}.contains('#')",
            "must be a URL without query or fragment",
            "FieldValueForbidden",
        ),
        Cel(lambda it: f"{it}.matches('[@?#]') || {fits(it, regexes.URL)}", "must be an http:// or https:// URL"),
    ),
]

_LABEL_MESSAGE = "lower-case letters, digits and hyphens, a letter or digit at both ends"
Label = Annotated[str, matching(regexes.LABEL, _LABEL_MESSAGE, longest=63)]
SinkName = Annotated[str, matching(regexes.LABEL, _LABEL_MESSAGE, longest=52)]
ObjectName = Annotated[
    str,
    matching(
        rf"{regexes.LABEL}(\.{regexes.LABEL})*", "a Kubernetes name: lower-case letters, digits, - and .", longest=253
    ),
]
_FLUSH_MARK = "-[0-9]{12}"
_FLUSH_MARK_MESSAGE = "must not contain - and twelve digits, as names that hold their flush do"


def _no_flush_mark(text: str) -> str:
    if re.search(_FLUSH_MARK, text):
        raise Refusal(_FLUSH_MARK_MESSAGE)
    return text


# What comes behind a name must not look like a part of it: an offset, a generation, the mark of a flush. A _ and digits
# are no part: names with _ have a fixed number of them.
FileNamePart = Annotated[
    str,
    matching(
        r"((-[A-Za-fh-z0-9._=@,-]|-g[A-Za-z._=@,-]|[A-Za-z._=@,])[A-Za-z0-9._=@,-]*|-g?)?",
        "letters, digits and . _ - = @ , only, and not begin with a digit, or with -g and a digit",
        longest=64,
    ),
    after(_no_flush_mark, Cel(lambda it: f"!{it}.matches({literal(_FLUSH_MARK)})", _FLUSH_MARK_MESSAGE)),
]
Region = Annotated[str, matching(r"[a-z0-9-]+", "a region such as eu-central-1", longest=64)]
TimeZone = Annotated[str, matching(r"[A-Za-z0-9_+/-]+", "a zone such as Europe/Berlin", longest=64)]
