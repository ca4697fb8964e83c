"""Object keys: no two objects share one, and names sort by offset."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from s3sink_api.spec import Spec, SpecError, parse
from s3sink_job.base.errors import FinalError
from s3sink_job.layout.escaping import missing_segment, value_segment
from s3sink_job.layout.keys import (
    MAX_KEY_BYTES,
    ObjectSource,
    constant_folder,
    folder_hint,
    key_with_mark,
    keys_like,
    may_clash,
    names_a_flush,
    object_key,
    refused_for_length,
    room_for_folder,
)
from s3sink_job.layout.settings import PARTITION, TOMBSTONES, TOPIC, LayoutItem, ObjectLayout
from s3sink_job.layout.topic_folders import folder_problems
from s3sink_job.layout.topic_names import TopicNames, topic_names_of
from tests.api.documents import minimal

DEFAULT = ObjectLayout()
FIELD, HEADER = LayoutItem("Field", "", ("country",)), LayoutItem("Header", "", ("region",))
DAY = LayoutItem("Time", source="Record", format="'year='yyyy/MM")
STAMP = 1_763_251_200_123


def key(layout: ObjectLayout, at: ObjectSource, *, prefix: str = "", folder: str | None = None, mark: str = "") -> str:
    folder = constant_folder(layout, at.topic, at.partition) if folder is None else folder
    return object_key(prefix, layout, at, folder, ".jsonl", mark)


def test_the_name_is_the_one_the_documentation_shows() -> None:
    at = ObjectSource("orders", 1, 3, 42)

    assert object_key("raw", DEFAULT, at, "orders/3", ".jsonl.gz") == "raw/orders/3/0000000000000000042.jsonl.gz"


def test_without_a_prefix_the_key_begins_with_the_topic() -> None:
    assert key(DEFAULT, ObjectSource("orders", 1, 0, 0)) == "orders/0/0000000000000000000.jsonl"


def test_without_folders_the_key_is_the_name() -> None:
    assert key(ObjectLayout(items=()), ObjectSource("orders", 1, 0, 7)) == "orders+0+0000000000000000007.jsonl"


def test_a_recreated_topic_shows_in_the_name() -> None:
    assert key(DEFAULT, ObjectSource("orders", 2, 0, 5)) == "orders/0/0000000000000000005-g2.jsonl"


def test_names_have_a_mark_where_the_store_cannot_fence_a_driver() -> None:
    found = key(DEFAULT, ObjectSource("orders", 2, 0, 5), mark="000000000007-abc")

    assert found == "orders/0/0000000000000000005-g2-000000000007-abc.jsonl"


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (ObjectLayout(style="Confluent", offset_digits=10), "orders+3+0000000042"),
        (ObjectLayout(style="Lenses", offset_digits=12), "orders(3_000000000042)"),
        (ObjectLayout(style="Lenses", offset_digits=12, partition_digits=4), "orders(0003_000000000042)"),
        (ObjectLayout(style="Upload", stamp=STAMP), "2025_11_16_1763251200123_5"),
        (ObjectLayout(offset_digits=0, suffix="-raw"), "42-raw"),
        (ObjectLayout(items=(TOPIC,)), "orders+3+0000000000000000042"),
        (ObjectLayout(items=(PARTITION, FIELD), partition_digits=2), "orders+03+0000000000000000042"),
    ],
)
def test_names_follow_the_style(layout: ObjectLayout, name: str) -> None:
    assert object_key("", layout, ObjectSource("orders", 1, 3, 42, part=5), "x", ".csv") == f"x/{name}.csv"


def test_folders_that_all_records_share_are_known_without_a_record() -> None:
    wallclock = LayoutItem("Time", source="Wallclock", format="'day='yyyy-MM-dd/HH", timezone="Asia/Kolkata")
    layout = ObjectLayout(items=(LayoutItem("Topic", "topic"), LayoutItem("Partition", "part"), wallclock), stamp=STAMP)

    assert constant_folder(layout, "orders", 3) == "topic=orders/part=3/day=2025-11-16/05"


def test_a_plan_shows_a_star_for_what_depends_on_the_record() -> None:
    layout = ObjectLayout(items=(TOPIC, LayoutItem("Field", "a b", ("x",)), DAY, FIELD))

    assert folder_hint(layout, "orders", 3) == "orders/a b=*/year=*/*/*"


topics = st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True).filter(lambda name: name not in {".", ".."})
topics |= st.sampled_from(["0", "00", "1", "0-g2", "-g2", "a", "a-g2", TOMBSTONES, "a+", "5", "2025_11_16_1_0"]).filter(
    lambda name: "+" not in name
)
small = st.integers(0, 12)
places = st.builds(
    ObjectSource,
    topics,
    st.integers(1, 12) | st.just(2**31 - 1),
    small | st.just(2**31 - 1),
    small | st.integers(0, 2**63 - 1),
)
hive_names = st.sampled_from(["", "", "topic", "a", "0", "a=b/c"])
items = st.one_of(
    st.builds(LayoutItem, st.sampled_from(["Topic", "Partition"]), hive_names),
    st.builds(LayoutItem, st.just("Field"), hive_names, st.just(("f",))),
    st.builds(LayoutItem, st.just("Header"), hive_names, st.just(("h",))),
    st.sampled_from([DAY, replace(DAY, format="d/M/d"), LayoutItem("Time", source="Wallclock", format="H/m")]),
)
odd = ["", "-g2", "0", "-", "+0+1", "(0_1)", "-g", "_0", ".gz", "-000000000007-a", ".", "1-g2"]
layouts = st.builds(
    ObjectLayout,
    items=st.lists(items, max_size=5).map(tuple),
    style=st.sampled_from(["Offset", "Confluent", "Lenses", "Upload"]),
    offset_digits=st.integers(0, 19),
    partition_digits=st.integers(0, 19),
    suffix=st.sampled_from(odd),
    stamp=st.integers(0, 5) | st.integers(0, 4_000_000_000_000),
)
marks = st.just("") | st.from_regex(r"[0-9]{12}-[a-z0-9]{1,4}", fullmatch=True)
values = topics | st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.integers(0, 12).map(str)
values |= st.sampled_from(["/", "a/b", "=", "..", ".", "%2F", "a%2Fb", "*", "__HIVE_DEFAULT_PARTITION__", "0/0"])
extensions = st.sampled_from([".jsonl", ".json.gz", "", "-g2", "0"])


@st.composite
def objects(draw: st.DrawFn, layout: ObjectLayout) -> tuple[ObjectSource, ObjectLayout, str, str]:
    """One object of a sink: where its records are from, the flush's layout, its folder, its mark."""
    at = replace(draw(places), part=draw(small))
    if layout.style == "Upload":
        layout = replace(layout, stamp=draw(st.sampled_from([layout.stamp, layout.stamp + 1, layout.stamp * 10])))
    parts = []
    for item in layout.items:
        if item.kind in {"Topic", "Partition"}:
            parts.append(constant_folder(replace(layout, items=(item,)), at.topic, at.partition))
        elif item.kind == "Time":
            parts.append(constant_folder(replace(layout, items=(item,), stamp=draw(small) * 10**10), "", 0))
        else:
            parts.append(value_segment(item.name, draw(values)) if draw(st.booleans()) else missing_segment(item.name))
    if draw(st.booleans()):
        parts.insert(0, TOMBSTONES)
    return at, layout, "/".join(parts), draw(marks)


def identity(at: ObjectSource, layout: ObjectLayout) -> tuple[object, ...]:
    """What is different for any two objects of a sink."""
    if layout.style == "Upload":
        return (layout.stamp, at.part)
    return (at.topic, at.generation, at.partition, at.first)


@given(layouts, st.sampled_from(["", "raw", "a/b"]), extensions, st.data())
def test_two_objects_never_share_a_key(layout: ObjectLayout, prefix: str, extension: str, data: st.DataObject) -> None:
    one, other = data.draw(objects(layout)), data.draw(objects(layout))
    assume(identity(*one[:2]) != identity(*other[:2]))

    keys = [object_key(prefix, flush, at, folder, extension, mark) for at, flush, folder, mark in (one, other)]

    assert keys[0] != keys[1]


@given(layouts, st.data(), st.sampled_from(["topic", "generation", "partition", "first", "mark"]))
def test_two_objects_that_differ_in_one_thing_never_share_a_key(
    layout: ObjectLayout, data: st.DataObject, what: str
) -> None:
    """Unlike two random objects, these differ in one thing only; the values of the other are arbitrary."""
    assume(layout.style != "Upload")
    at, _, folder, mark = data.draw(objects(layout))
    step = data.draw(st.integers(1, 11))
    near = {
        "topic": replace(at, topic=at.topic + data.draw(st.sampled_from(["0", "-g2", "-", "_0", ".1"]))),
        "generation": replace(at, generation=at.generation + step),
        "partition": replace(at, partition=at.partition + step),
        "first": replace(at, first=at.first + step if at.first < 2**62 else at.first - step),
        "mark": at,
    }[what]
    near_mark = data.draw(marks.filter(lambda m: m != mark)) if what == "mark" else mark
    beside = data.draw(objects(layout))[2] if what == "first" else folder
    for kind in ("Topic", "Partition"):
        # The folders follow from topic and partition.
        if what == kind.lower():
            beside = _moved(layout, folder, near)

    assert object_key("", layout, at, folder, ".txt", mark) != object_key("", layout, near, beside, ".txt", near_mark)


def _moved(layout: ObjectLayout, folder: str, at: ObjectSource) -> str:
    parts = folder.split("/")
    first = len(parts) - sum(item.format.count("/") + 1 for item in layout.items)
    for number, item in enumerate(layout.items):
        if item.kind in {"Topic", "Partition"}:
            place = first + number + sum(item.format.count("/") for item in layout.items[:number])
            parts[place] = constant_folder(replace(layout, items=(item,)), at.topic, at.partition)
    return "/".join(parts)


@given(values, values, hive_names)
@example("a/b", "a%2Fb", "")
def test_two_values_never_share_a_folder(one: str, other: str, name: str) -> None:
    assert (value_segment(name, one) == value_segment(name, other)) == (one == other)
    assert value_segment(name, one) not in {missing_segment(name), TOMBSTONES, ".", "..", ""}
    assert "/" not in value_segment(name, one)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_names_sort_as_offsets_do(one: int, other: int) -> None:
    names = [key(DEFAULT, ObjectSource("orders", 1, 0, first)) for first in (one, other)]

    assert (names[0] < names[1]) == (one < other)


def test_the_longest_key_that_s3_allows_is_accepted() -> None:
    at = ObjectSource("t", 1, 0, 0)
    tail = len(key(DEFAULT, at)) + 1

    assert len(key(DEFAULT, at, prefix="p" * (MAX_KEY_BYTES - tail))) == MAX_KEY_BYTES


@pytest.mark.parametrize("prefix", ["p" * 1000, "ä" * 500])
def test_a_key_that_s3_would_refuse_is_an_error_that_names_the_field(prefix: str) -> None:
    with pytest.raises(FinalError, match=r"spec\.destination\.prefix") as refused:
        key(DEFAULT, ObjectSource("orders", 1, 0, 0), prefix=prefix)

    assert refused.value.reason == "KeyTooLong"


@given(layouts, places, st.sampled_from(["", "raw", "ä" * 20]), marks)
def test_a_folder_that_fits_its_room_never_makes_too_long_a_key(
    layout: ObjectLayout, at: ObjectSource, prefix: str, mark: str
) -> None:
    room = room_for_folder(prefix, layout, at.topic, ".parquet", mark)

    assert len(object_key(prefix, layout, at, "f" * room, ".parquet", mark).encode()) <= MAX_KEY_BYTES


def test_a_prefix_that_leaves_no_room_is_an_error_before_anything_is_read() -> None:
    with pytest.raises(FinalError, match=r"spec\.destination\.prefix") as refused:
        room_for_folder("p" * 512, ObjectLayout(style="Confluent"), "t" * 249, ".parquet", "")

    assert refused.value.reason == "KeyTooLong"


def test_routes_with_folders_that_could_be_confused_are_found() -> None:
    """Topic y of the second route looks like a value y of the first."""
    wide = ObjectLayout(items=(TOPIC, FIELD, PARTITION))
    assert object_key("raw", wide, ObjectSource("x", 1, 0, 5), "x/y/0", "") == object_key(
        "raw/x", DEFAULT, ObjectSource("y", 1, 0, 5), "y/0", ""
    )

    assert may_clash(("raw", wide), ("raw/x", DEFAULT))
    assert may_clash(("", wide), ("raw", DEFAULT))
    assert may_clash(("raw", wide), ("raw", ObjectLayout(items=(FIELD, TOPIC, PARTITION))))
    assert not may_clash(("raw", wide), ("rawer", DEFAULT))
    assert not may_clash(("raw", DEFAULT), ("raw/x", DEFAULT))
    assert not may_clash(("raw", wide), ("raw", ObjectLayout(style="Confluent")))
    assert not may_clash(("raw", wide), ("raw", ObjectLayout(items=(TOPIC,))))


NAMES = ("x", "0", TOMBSTONES)
"""Few, so that topics, partitions, values and prefixes often have the same name."""
DATES = LayoutItem("Time", source="Record", format="d/M")
few_items = st.sampled_from([FIELD, HEADER, LayoutItem("Field", "x", ("x",)), LayoutItem("Topic", "x"), DATES])
folders = st.lists(few_items, max_size=2, unique=True).flatmap(lambda more: st.permutations([TOPIC, PARTITION, *more]))
"""With topic and partition in them: names may leave them out."""
prefixes = st.sampled_from(["", "x", "x/0", "0", TOMBSTONES])
few_layouts = st.builds(
    ObjectLayout,
    items=(folders | folders | st.lists(few_items, max_size=3, unique=True)).map(tuple),
    style=st.sampled_from(["Offset", "Offset", "Offset", "Confluent", "Lenses", "Upload"]),
    offset_digits=st.integers(0, 2),
    partition_digits=st.integers(0, 2),
    suffix=st.just("") | st.sampled_from(["-g2", "-", "-a", ".gz", "=x", "@0"]),
)
routes = st.tuples(prefixes, few_layouts)
Route = tuple[str, ObjectLayout]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Route, Route]:
    """Two routes, mostly near to each other: the same names, the same folders in another order or below another one."""
    (prefix, layout), (beside, different) = draw(routes), draw(routes)
    match draw(st.sampled_from(["order", "depth", "folders", "any"])):
        case "order":
            return (prefix, layout), (prefix, replace(layout, items=tuple(draw(st.permutations(layout.items)))))
        case "depth":
            below = "/".join(part for part in (prefix, draw(st.sampled_from(NAMES))) if part)
            return (prefix, replace(layout, items=(*layout.items, FIELD))), (below, layout)
        case "folders":
            different = replace(layout, items=different.items)
    return (prefix, layout), (beside, different)


def every_key(route: Route, topic: str, part: int) -> set[str]:
    """Of all small objects that the topic could have. Each number within a flush is given once: `part` is the first."""
    prefix, layout = route
    choices = [_segments(item, topic) for item in layout.items]
    found = set()
    for folders, apart, partition in product(product(*choices), (False, True), (0, 1)):
        inner = [str(partition) if folder is None else folder for folder in folders]
        folder = "/".join([TOMBSTONES, *inner] if apart else inner)
        for generation, first in product((1, 2), (0, 1)):
            at = ObjectSource(topic, generation, partition, first, part + 2 * first)
            found.add(object_key(prefix, layout, at, folder, ".jsonl"))
    return found


def _segments(item: LayoutItem, topic: str) -> list[str | None]:
    """The folders of an item; None for that of the partition."""
    if item.kind == "Partition":
        return [None]
    if item.kind == "Topic":
        return [constant_folder(ObjectLayout(items=(item,)), topic, 0)]
    if item.kind == "Time":
        return [constant_folder(ObjectLayout(items=(item,), stamp=stamp), "", 0) for stamp in (0, 86_400_000)]
    return [missing_segment(item.name), *(value_segment(item.name, value) for value in NAMES)]


def meet(one: Route, other: Route) -> bool:
    """Whether an object of one route and one of another topic and the other route share a key."""
    mine = {topic: every_key(one, topic, 0) for topic in NAMES}
    theirs = {topic: every_key(other, topic, 1) for topic in NAMES}
    return any(not mine[topic].isdisjoint(theirs[beside]) for topic, beside in permutations(NAMES, 2))


@settings(max_examples=300, deadline=None)
@given(pairs())
def test_objects_of_two_routes_share_a_key_only_if_a_clash_is_reported(pair: tuple[Route, Route]) -> None:
    assert may_clash(*pair) or not meet(*pair)


def test_two_routes_that_meet_are_found_by_looking_at_their_keys() -> None:
    """Otherwise the test above would prove nothing."""
    wide, narrow = ObjectLayout(items=(TOPIC, FIELD, PARTITION), offset_digits=1), ObjectLayout(offset_digits=1)

    assert meet(("raw", wide), ("raw/x", narrow))
    assert not meet(("raw", wide), ("raw", narrow))


@pytest.mark.parametrize(
    ("key", "again"),
    [
        ("raw/t/0/7-000000000003-58d6fd3100fb.jsonl", "raw/t/0/7-000000000012-0123456789ab.jsonl"),
        ("raw/t/0/7-g2-000000000003-58d6fd3100fb-part.jsonl", "raw/t/0/7-g2-part-000000000012-0123456789ab.jsonl"),
        ("raw/t/0/7.jsonl", "raw/t/0/7-000000000012-0123456789ab.jsonl"),
    ],
)
def test_an_object_written_again_is_named_after_the_flush_that_does_it(key: str, again: str) -> None:
    assert key_with_mark(key, ".jsonl", "000000000012-0123456789ab") == again
    assert names_a_flush(again)


@pytest.mark.parametrize("key", ["raw/t/0/0000000000000000007.jsonl", "a-000000000003-58d6fd3100fb/7.jsonl"])
def test_the_mark_of_a_flush_is_found_only_in_the_name_of_an_object(key: str) -> None:
    assert not names_a_flush(key)


@pytest.mark.parametrize(
    ("key", "limit", "refused"),
    [
        ("raw/" + "é" * 128, 255, "256 bytes"),
        ("raw/" + "é" * 127 + "/x", 255, ""),
        ("x" * 200 + "/" + "y" * 200, 255, ""),
        ("x" * 300, None, ""),
    ],
)
def test_a_limit_between_slashes_counts_bytes_of_each_part(key: str, limit: int | None, refused: str) -> None:
    why = refused_for_length(key, limit)
    assert refused in why
    assert bool(why) is bool(refused)


names_of_topics = st.builds(
    TopicNames,
    names=st.dictionaries(st.sampled_from(["a", "b", "a-b"]), st.sampled_from(["a", "b", "x", "a_b"]), max_size=2).map(
        lambda named: tuple(named.items())
    ),
    pattern=st.sampled_from(["", "-", "^", "[._]", "(.)-(.)", "a|b"]),
    replacement=st.sampled_from(["_", "x", "", "p_", "$2$1"]),
)
ALIKE = ["a", "b", "a-b", "a_b", "a.b", "b-a", "x", "p_a", "_tombstones", ".s3sink", "b_a"]


@settings(max_examples=400)
@given(names_of_topics, layouts, st.sampled_from(["", "raw"]), st.data())
def test_objects_of_renamed_topics_share_no_key_unless_their_folder_is_reported(
    named: TopicNames, layout: ObjectLayout, prefix: str, data: st.DataObject
) -> None:
    with suppress(FinalError):
        named.check()
        layout = replace(layout, topics=named, style=data.draw(st.sampled_from(["Offset", "Confluent"])))
        one, other = data.draw(st.lists(st.sampled_from(ALIKE), min_size=2, max_size=2, unique=True))
        if named.folder_of(one) == named.folder_of(other):
            return  # see `test_two_topics_with_one_folder_are_both_named`
        at, _, folder, mark = data.draw(objects(layout))
        keys = [
            object_key(prefix, layout, place, _moved(layout, folder, place), ".x", mark)
            for place in (replace(at, topic=one), replace(at, topic=other))
        ]
        assert keys[0] != keys[1]
        begin, _ = keys_like(prefix, layout, one)
        if TOMBSTONES not in folder.split("/")[:1]:
            assert keys[0].startswith(begin)


def spec_of(**layout: object) -> Spec:
    document = minimal()
    document["spec"]["source"] = {"bootstrapServers": "kafka:9092", "topicPattern": ".*"}
    document["spec"]["layout"] = layout
    return parse(document).spec


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(ALIKE), min_size=2, max_size=5, unique=True),
    st.sampled_from(["-", "[._]", "^", "(.)-(.)", "a|b", ".*"]),
    st.sampled_from(["_", "x", "", "p_"]),
    st.dictionaries(st.sampled_from(ALIKE), st.sampled_from(ALIKE), max_size=2),
)
def test_two_topics_with_one_folder_are_both_named(
    topics: list[str], pattern: str, replacement: str, named: dict[str, str]
) -> None:
    assume(len(set(named.values())) == len(named))
    listed = [{"topic": topic, "as": folder} for topic, folder in named.items()]
    spec = spec_of(topicNames=listed, topicReplacement={"pattern": pattern, "replacement": replacement})
    problems = folder_problems([(topic, spec) for topic in topics], None)

    folders = {topic: topic_names_of(spec.layout).folder_of(topic) for topic in topics}
    for one, other in permutations(topics, 2):
        if folders[one] == folders[other]:
            assert problems[one].reason in {"TopicsShareFolder", "TopicFolderRefused"}
    shared = {topic for topic in topics if list(folders.values()).count(folders[topic]) > 1}
    refused = {topic for topic in topics if folders[topic] in {"", ".", "..", ".s3sink"}}
    assert set(problems) == shared | refused
    for topic in shared - refused:
        assert topic in problems[topic].message


@pytest.mark.parametrize(
    ("pattern", "replacement", "topic", "folder"),
    [
        ("-", "_", "sink-topic-a", "sink_topic_a"),
        ("^", "public_", "users", "public_users"),
        (r"^shop\.(.*)$", "$1", "shop.orders", "orders"),
        (r"^(\w+)\.(\w+)$", "$2-$1", "shop.orders", "orders-shop"),
        ("x", "y", "orders", "orders"),
        (r"\.", "", "a.b", "ab"),
        (".", "$0$0", "ab", "aabb"),
    ],
)
def test_a_replacement_is_made_as_documented(pattern: str, replacement: str, topic: str, folder: str) -> None:
    assert TopicNames((("sink", "x"),), pattern, replacement).folder_of(topic) == folder


def test_a_listed_name_wins_and_the_others_keep_theirs() -> None:
    named = TopicNames((("sink-topic", "orders"),), "-", "_")

    assert [named.folder_of(topic) for topic in ("sink-topic", "sink-other")] == ["orders", "sink_other"]
    assert TopicNames((("a", "b"),)).folder_of("c") == "c"


def test_the_folder_is_renamed_and_the_name_of_the_object_is_not() -> None:
    named = TopicNames((("sink-topic", "sink_topic"),))
    at = ObjectSource("sink-topic", 1, 0, 7)

    assert key(ObjectLayout(topics=named), at) == f"sink_topic/0/{7:019d}.jsonl"
    assert key(ObjectLayout(items=(TOPIC,), topics=named), at) == f"sink_topic/sink-topic+0+{7:019d}.jsonl"
    hive = ObjectLayout(items=(LayoutItem("Topic", "topic"),), style="Lenses", offset_digits=1, topics=named)
    assert key(hive, at) == "topic=sink_topic/sink-topic(0_7).jsonl"


@pytest.mark.parametrize(("pattern", "replacement"), [("(?=a)", "x"), ("a", "$1"), (r"(a)\1", "x")])
def test_what_re2_cannot_replace_is_an_error_that_names_the_field(pattern: str, replacement: str) -> None:
    with pytest.raises(FinalError, match=r"spec\.layout\.topicReplacement") as refused:
        TopicNames((), pattern, replacement).check()

    assert refused.value.reason == "InvalidTopicReplacement"


@pytest.mark.parametrize("suffix", ["_v1", "_2", "-2", "-00000000001", "_", "v1", "final", "abc"])
def test_the_mark_of_a_flush_is_found_behind_any_suffix(suffix: str) -> None:
    mark = "000000000012-0123456789ab"
    plain = object_key("", ObjectLayout(suffix=suffix), ObjectSource("t", 1, 0, 7), "t/0", ".jsonl")

    assert not names_a_flush(plain)
    again = key_with_mark(plain, ".jsonl", mark)
    assert names_a_flush(again)
    assert key_with_mark(again, ".jsonl", "000000000013-0123456789ab") == again.replace("0012-", "0013-")
    assert names_a_flush(key(ObjectLayout(suffix=suffix), ObjectSource("t", 1, 0, 7), mark=mark))


SUFFIXES = [
    *("", "_v1", "_0", "_0_1", "_", "-", "-1", "-g", "-gz", "-0-1", ".5", "a", "=1", "-00000000001", "_0-g"),
    *("0", "5", "-g2", "-000000000012-0123456789ab", "12"),
]
MARKS = ("", "000000000012-0123456789ab")


def allowed(suffix: str) -> bool:
    with suppress(SpecError):
        return bool(spec_of(suffix=suffix))
    return False


def meet_when_it_changes(before: str, after: str, style: str) -> bool:
    """Whether an object with the one suffix and another object with the other one share a key."""
    found: list[dict[str, object]] = []
    for suffix in (before, after):
        keys: dict[str, object] = {}
        for first, generation, mark in product((0, 1, 5, 10, 12, 15, 112), (1, 2), MARKS):
            layout = ObjectLayout(style=style, offset_digits=0, suffix=suffix, stamp=first)
            at = ObjectSource("t", generation, 0, first, part=first)
            made = object_key("", layout, at, "t/0", ".jsonl", mark)
            keys[made] = (first, generation, mark)
        found.append(keys)
    return any(found[1].get(made, source) != source for made, source in found[0].items())


@pytest.mark.parametrize("style", ["Offset", "Confluent", "Lenses", "Upload"])
def test_a_changed_suffix_never_gives_two_objects_one_key(style: str) -> None:
    right = [suffix for suffix in SUFFIXES if allowed(suffix)]
    assert {"_v1", "_0", "-1"} <= set(right)
    assert [pair for pair in permutations(right, 2) if meet_when_it_changes(*pair, style)] == []


def test_suffixes_that_could_be_a_part_of_a_name_are_refused() -> None:
    """Otherwise the test above would prove nothing."""
    wrong = [suffix for suffix in SUFFIXES if not allowed(suffix)]

    assert wrong == ["0", "5", "-g2", "-000000000012-0123456789ab", "12"]
    assert all(meet_when_it_changes("", suffix, "Offset") for suffix in wrong)
