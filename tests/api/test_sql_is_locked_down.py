"""Expressions of a transform: what is allowed is on a list, and everything else is refused with its place."""

from __future__ import annotations

import json
import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.sql_expressions import Expression, Star, parse_filter, parse_select
from s3sink_api.spec.sql_functions import FUNCTIONS, OPERATORS
from s3sink_api.spec.sql_parser import locked_database
from tests.api.documents import errors_of, minimal, put

HOSTILE = [
    # files, network, extensions, settings, the process
    "read_text('/etc/passwd') AS x",
    "(SELECT content FROM read_text('/etc/passwd')) AS x",
    "(FROM '/etc/passwd') AS x",
    "(SELECT * FROM 's3://other/data.parquet') AS x",
    "(SELECT * FROM 'https://example.org/a.csv') AS x",
    "a FROM read_csv('/etc/passwd')",
    "a FROM '/etc/passwd'",
    "glob('/*') AS x",
    "getenv('AWS_SECRET_ACCESS_KEY') AS x",
    "current_setting('s3_secret_access_key') AS x",
    "getvariable('x') AS x",
    "parse_path('/a') AS x",
    "a; COPY (SELECT 1) TO '/tmp/x'",
    "1; ATTACH '/tmp/x.db'",
    "1; INSTALL httpfs",
    "1; LOAD httpfs",
    "1; SET enable_external_access = true",
    "1; RESET lock_configuration",
    "1; PRAGMA version",
    "1; CREATE SECRET s (TYPE s3)",
    "1; EXPORT DATABASE '/tmp/x'",
    "duckdb_secrets() AS x",
    "duckdb_settings() AS x",
    "query('SELECT 1') AS x",
    "query_table('t') AS x",
    "json_execute_serialized_sql('{}') AS x",
    "json_serialize_sql('SELECT 1') AS x",
    "write_log('x') AS x",
    "pg_sleep(1000) AS x",
    "sleep_ms(1000) AS x",
    "error('x') AS x",
    # other than one value for each row
    "(SELECT 1) AS x",
    "EXISTS (SELECT 1) AS x",
    "a IN (SELECT 1) AS x",
    "sum(a) AS x",
    "count(*) AS x",
    "count(*) FILTER (WHERE a) AS x",
    "list(a ORDER BY b) AS x",
    "any_value(a) AS x",
    "row_number() OVER () AS x",
    "lag(a) OVER (ORDER BY b) AS x",
    "unnest([1, 2]) AS x",
    "generate_series(1, 1000000000) AS x",
    "range(1000000000) AS x",
    "a AS x, b AS y",
    "DISTINCT a AS x",
    "a AS x LIMIT 1",
    "a AS x WHERE b",
    "a AS x GROUP BY a",
    "a AS x ORDER BY a",
    "a AS x QUALIFY true",
    "a AS x USING SAMPLE 1",
    "a AS x UNION SELECT 2",
    "columns('.*') AS x",
    "t.* AS x",
    # other results at another time
    "random() AS x",
    "uuid() AS x",
    "gen_random_uuid() AS x",
    "now() AS x",
    "today() AS x",
    "current_timestamp AS x",
    "CURRENT_DATE AS x",
    "age(a) AS x",
    "nextval('s') AS x",
    "current_user AS x",
    "version() AS x",
    "hash(a) AS x",
    "typeof(a) AS x",
    "txid_current() AS x",
    # memory and time without bounds
    "repeat(a, 1000000000) AS x",
    "repeat(a, b) AS x",
    "lpad(a, 1000000000, 'x') AS x",
    "rpad(a, b, 'x') AS x",
    "replace(replace(a, 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx') AS x",
    "replace(a, 'x', b) AS x",
    "regexp_replace(a, '.', 'xxxxxxxxxxxxxxxxxxxxxxxx', 'g') AS x",
    "array_to_string(a, b) AS x",
    "a || a || a || a || a || a || a || a || a || a || a || a || a || a || a || a || a AS x",
    "repeat(repeat('x', 1000), 1000) AS x",
    "repeat('x', 1000) || repeat('y', 1000) || repeat(upper(repeat('z', 500)), 40) AS x",
    "lpad('', 1000, 'x') || " * 17 + "a AS x",
    "lpad('', 1000, '\N{MUSICAL SYMBOL G CLEF}') || " * 5 + "a AS x",
    "replace(a, 'x', '\N{MUSICAL SYMBOL G CLEF}abcdefghijklmn') AS x",
    "translate(translate(translate(a, 'x', 'ŧŧ𝄞'), 'y', '𝄞'), 'z', '𝄞') AS x",
    "[[[[[a]::VARCHAR]::VARCHAR]::VARCHAR]::VARCHAR]::VARCHAR AS x",
    "[([([([a]::JSON)::VARCHAR]::JSON)::VARCHAR]::JSON)::VARCHAR] AS x",
    "TRY_CAST([TRY_CAST([a::TEXT::TEXT] AS VARCHAR[])] AS STRUCT(x VARCHAR)[])::STRING AS x",
    "concat({'a': concat({'a': concat({'a': concat({'a': concat({'a': a})})})})}) AS x",
    "array_to_string([[array_to_string([[" * 3 + "a" + "]], '')]], '')" * 3 + " AS x",
    "printf('%1000000000d', a) AS x",
    "format('{:1000000000}', a) AS x",
    "list_transform(a, lambda y: y + 1) AS x",
    "[y FOR y IN a] AS x",
    "list_reduce(a, lambda y, z: y + z) AS x",
    "levenshtein(a, b) AS x",
    # what has no place here
    "$1 AS x",
    "? AS x",
    "#1 AS x",
    "a COLLATE nocase AS x",
    "CAST(a AS my_type) AS x",
    "CAST(a AS main.t) AS x",
    "CAST(a AS ENUM('x')) AS x",
    "main.upper(a) AS x",
    "system.main.upper(a) AS x",
    "upper(a",
    "a +",
    "a AS",
    "a + 1",
    "[" * 600 + "a" + "]" * 600,
]


DATABASE = locked_database()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_expression_is_refused_by_name(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        parse_select(text)
    assert re.search(r" at position [1-9]", refusal.value.message)
    errors = errors_of(put(minimal(), "spec.transform", {"select": [text]}))
    assert set(errors) == {"spec.transform.select[0]"}


PARTS = {
    "a AS x FROM t": ("FROM begins another part of a query", 8),
    "ä AS x WHERE b": ("WHERE begins another part of a query", 8),
    "a AS x GROUP BY a": ("GROUP BY begins another part of a query", 8),
    "a AS x HAVING a": ("HAVING begins another part of a query", 8),
    "a AS x ORDER BY a LIMIT 1": ("ORDER BY begins another part of a query", 8),
    "a IS DISTINCT FROM b AS x LIMIT 1": ("LIMIT begins another part of a query", 27),
    "DISTINCT a AS x": ("DISTINCT begins another part of a query", 1),
    "(a) AS x UNION SELECT (SELECT 2 FROM t)": ("UNION begins another part of a query", 10),
    "extract(year FROM a) AS x QUALIFY true": ("QUALIFY begins another part of a query", 27),
    "'; FROM' AS x; SELECT 1": ("a second statement begins", 14),
    "1 AS x; LOAD httpfs": ("a second statement begins", 7),
}


@pytest.mark.parametrize("text", PARTS)
def test_what_follows_an_expression_is_named_in_words_of_sql(text: str) -> None:
    what, position = PARTS[text]
    with pytest.raises(Refusal) as refusal:
        parse_select(text)
    assert refusal.value.message == f"must be a single expression: {what} at position {position}"


@pytest.mark.parametrize("where", ["a AS b", "a > 1 AS b"])
def test_a_condition_with_a_name_is_refused_with_its_place(where: str) -> None:
    with pytest.raises(Refusal, match="' at position 1 is a condition, and has no name: leave AS b out"):
        parse_filter(where)


def test_at_least_sixty_hostile_expressions_are_tried() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("text", ["random() > 0.5", "(SELECT true)", "a; SELECT 1", "*", "a AS b", "sum(a) > 1", ""])
def test_a_hostile_condition_is_refused_by_name(text: str) -> None:
    assert set(errors_of(put(minimal(), "spec.transform", {"where": text}))) == {"spec.transform.where"}


def test_a_refusal_names_the_expression_and_its_position() -> None:
    errors = errors_of(put(minimal(), "spec.transform", {"where": "ä > 1 AND now() > b"}))
    assert errors["spec.transform.where"].startswith("'now()' at position 11 is not allowed")
    errors = errors_of(put(minimal(), "spec.transform", {"where": "ä > > 1"}))
    assert errors["spec.transform.where"].startswith("is not a SQL expression at position 5: syntax error")


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c",
        '"with space"."x"',
        "tags['k']",
        "list[1] AS x",
        "CAST(a AS DECIMAL(10, 2)) AS x",
        "a::BIGINT AS x",
        "TRY_CAST(a AS DATE) AS x",
        "CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS x",
        "coalesce(a, b, 0) AS x",
        "a BETWEEN 1 AND 2 AS x",
        "a IN ('x', 'y') AS x",
        "a LIKE 'x%' AS x",
        "regexp_extract(a, '([0-9]+)', 1) AS x",
        "strftime(_timestamp, '%Y-%m') AS x",
        "_timestamp + INTERVAL 1 DAY AS x",
        "_timestamp AT TIME ZONE 'Europe/Berlin' AS x",
        "{'a': a, 'b': b} AS x",
        "[a, b] AS x",
        "a ->> '$.x' AS x",
        "sha256(a || 'salt') AS x",
        "TRY(a // b) AS x",
        "repeat('-', 80) || lpad(a, 1000, ' ') AS x",
        "a::VARCHAR || '-' || b::VARCHAR || '-' || a::VARCHAR AS x",
        "array_to_string(list, ', ') AS x",
        f"'{'x' * 4000}' AS x",
        "* EXCLUDE (a, b)",
        "* REPLACE (upper(a) AS a)",
    ],
)
def test_what_people_need_is_allowed(text: str) -> None:
    assert parse_select(text)


@pytest.mark.parametrize(
    "text",
    [
        "* EXCLUDE (a.b)",
        "* EXCLUDE (c, a.b)",
        "* EXCLUDE (a.b.c)",
        "* EXCLUDE (a.b) REPLACE (1 AS c)",
        "* RENAME (a AS b)",
        "* EXCLUDE (a) AS x",
        "* AS x",
        "t.* EXCLUDE (a)",
    ],
)
def test_a_star_with_anything_that_would_be_ignored_is_refused(text: str) -> None:
    """Whoever leaves a field out must not find it in the bucket."""
    error = errors_of(put(minimal(), "spec.transform", {"select": [text]}))["spec.transform.select[0]"]
    assert error.startswith(f"'{text.partition(' AS x')[0]}' at position 1 ")


@given(st.lists(st.sampled_from(["a", "b", "A", '"a.b"', "a.b", '"a"."b"']), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_every_field_that_exclude_names_is_left_out_or_refused(names: list[str]) -> None:
    try:
        star = parse_select(f"* EXCLUDE ({', '.join(names)})")
    except Refusal:
        return
    assert isinstance(star, Star)
    assert set(star.exclude) == {name.strip('"') for name in names}


DEEP = {
    "additions": ("a + " * 900 + "a", 1),
    "one addition too many": ("a + " * 100 + "a", 1),
    "lists": ("[" * 600 + "a" + "]" * 600, 1),
    "brackets": ("(" * 1500 + "a" + ")" * 1500, 1),
    "casts": ("a" + "::VARCHAR" * 400, 2693),
    "negations": ("NOT (" * 300 + "a" + ")" * 300, 501),
    "types": ("CAST(a AS " + "STRUCT(a " * 300 + "INT" + ")" * 300 + ")", 902),
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("part", ["where", "select"])
def test_a_deep_expression_is_an_error_of_its_field(kind: str, part: str) -> None:
    text, position = DEEP[kind]
    transform = {"where": text} if part == "where" else {"select": [f"{text} AS x"]}
    (error,) = errors_of(put(minimal(), "spec.transform", transform)).values()
    assert error.startswith(f"is nested too deeply at position {position}: at most 100 operators")


@pytest.mark.parametrize(
    "text",
    [
        "a + " * 99 + "a",
        "abs(" * 99 + "a" + ")" * 99,
        "[" * 99 + "a" + "]" * 99,
        "{'k': " * 49 + "a" + "}" * 49,
        "CASE WHEN a THEN " * 99 + "b" + " END" * 99,
        "CASE WHEN a THEN b ELSE " * 99 + "c" + " END" * 99,
        " AND ".join(["a"] * 500),
        "a OR (" * 500 + "a" + ")" * 500,
    ],
)
def test_an_expression_as_deep_as_it_may_be_also_works_deep_in_the_stack(text: str) -> None:
    def at_level(levels: int) -> str:
        if levels:
            return at_level(levels - 1)
        (*_, found) = parse_filter(text)
        return found.sql(dict.fromkeys(found.paths, "c0"))

    assert "c0" in at_level(300)


def test_a_condition_may_have_several_lines_as_a_column_may() -> None:
    text = "a > 1\n\tAND b  -- both\r\n  AND c\n"
    for transform in ({"where": text}, {"select": [f"{text} AS x"]}):
        assert errors_of(put(minimal(), "spec.transform", transform)) == {}
    assert len(parse_filter(text)) == 3


def texts(depth: int) -> st.SearchStrategy[str]:
    """Expressions over the fields a, a text, and n, a number, as texts with few brackets."""
    leaf = st.sampled_from(["a", "n", "1", "-2", "1.50", "1e3", "'x'", "'it''s'", "NULL", "true", '"a"', "[1, n]"])
    if not depth:
        return leaf
    inner = texts(depth - 1)
    binary = st.sampled_from(
        [
            "+",
            "-",
            "*",
            "//",
            "%",
            "**",
            "||",
            "=",
            "<>",
            "<",
            "AND",
            "OR",
            "LIKE",
            "NOT LIKE",
            "IS DISTINCT FROM",
            "&",
            "<<",
        ]
    )
    return st.one_of(
        leaf,
        st.tuples(inner, binary, inner).map(" ".join),
        inner.map("({})".format),
        inner.map("NOT {}".format),
        inner.map("- {}".format),
        inner.map("{} IS NULL".format),
        inner.map("{}::VARCHAR".format),
        inner.map("TRY_CAST({} AS DECIMAL(10, 2))".format),
        inner.map("upper(({})::VARCHAR)".format),
        st.tuples(inner, inner, inner).map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} BETWEEN {t[1]} AND {t[2]}"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} NOT IN ({t[1]}, {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"coalesce({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"{{'k': {t[0]}, 'l': {t[1]}}}['k']"),
        inner.map("substring({}::VARCHAR FROM 2)".format),
    )


RECORDS = "(VALUES ('x', 1), ('it''s', -3), (NULL, 0), ('', NULL)) AS t(a, n)"


def results(database: duckdb.DuckDBPyConnection, sql: str) -> str:
    try:
        return repr(database.execute(f"SELECT {sql}\nFROM {RECORDS}").fetchall())
    except duckdb.Error as error:
        return type(error).__name__


@given(texts(3))
@settings(max_examples=300, deadline=None)
def test_sql_of_the_checked_tree_gives_what_the_text_itself_gives(text: str) -> None:
    try:
        found = parse_select(f"{text} AS x")
    except Refusal:
        return
    assert isinstance(found, Expression)
    written = found.sql({path: path[0] for path in found.paths})
    assert results(DATABASE, written) == results(DATABASE, text)


def test_all_functions_on_the_list_exist() -> None:
    with duckdb.connect() as database:
        found = database.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
        stable = {name for (name,) in found}
    # Those that the parser turns into something else.
    assert stable | {"ifnull", "if"} >= FUNCTIONS | OPERATORS


def test_no_function_on_the_list_changes_with_time() -> None:
    with duckdb.connect() as database:
        sql = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability NOT IN ('CONSISTENT')"
        changing = {name for (name,) in database.execute(sql).fetchall()}
    assert FUNCTIONS & changing == set()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/s3sink-should-not-exist'",
        "ATTACH '/tmp/s3sink-should-not-exist.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 8",
        "SELECT * FROM secret_variable",
    ],
)
def test_the_engine_itself_refuses_it_too(sql: str) -> None:
    secret_variable = [json.dumps("a Python variable")]
    assert secret_variable
    with pytest.raises(duckdb.Error):
        locked_database().execute(sql).fetchall()


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse_filter(text)
    except Refusal:
        return


def test_names_keep_their_case_and_quotes() -> None:
    found = parse_select('"Order Id" || Country AS "X y"')
    assert isinstance(found, Expression)
    assert (found.name, found.paths) == ("X y", (("Order Id",), ("Country",)))
    assert found.sql({("Order Id",): "c0", ("Country",): "c1"}) == "(c0 || c1)"
