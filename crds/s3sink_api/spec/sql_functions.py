"""What an expression of `spec.transform` may call. A function is here only if it

- gives the same result for the same arguments, at any time and in any later release: no clock, no chance, no hash
  that DuckDB may change,
- reads nothing beside its arguments: no file, setting, variable or catalog,
- gives one value for each row, in time and memory in proportion to its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

_OPERATORS = """
    + - * / // % ** ^ & | ~ << >> || @ ->> ^@
    ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape
"""
OPERATORS = frozenset(_OPERATORS.split())
_TEXT = """
    upper ucase lower lcase length len char_length character_length strlen octet_length bit_length
    substring substr left right trim ltrim rtrim replace reverse concat concat_ws contains starts_with prefix
    ends_with suffix instr position strpos split split_part string_split str_split
    regexp_matches regexp_full_match regexp_extract regexp_extract_all regexp_replace regexp_escape
    lpad rpad repeat ascii ord unicode chr translate strip_accents nfc_normalize
    md5 sha1 sha256 hex to_hex unhex from_hex base64 to_base64 from_base64 encode decode url_encode url_decode
"""
_NUMBERS = """
    abs ceil ceiling floor round round_even trunc sign sqrt cbrt exp ln log log2 log10 pow power mod fmod add subtract
    multiply divide greatest least isnan isinf isfinite even gcd lcm pi radians degrees sin cos tan cot asin acos atan
    atan2 xor bit_count nullif if ifnull
"""
_TIMES = """
    date_part datepart date_trunc datetrunc date_diff datediff date_sub datesub date_add year month day dayofmonth hour
    minute second millisecond microsecond nanosecond quarter week weekofyear dayofweek isodow weekday dayofyear isoyear
    yearweek dayname monthname last_day days_in_month strftime strptime try_strptime epoch epoch_ms epoch_us epoch_ns
    make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns to_timestamp timezone time_bucket
    to_years to_months to_quarters to_weeks to_days to_hours to_minutes to_seconds to_milliseconds to_microseconds
"""
_NESTED = """
    list_value list_pack struct_pack struct_extract list_extract list_element array_extract element_at
    list_contains list_has array_contains array_has list_position list_indexof array_position list_has_any list_has_all
    list_concat list_cat array_concat list_slice array_slice list_append list_prepend list_sort list_reverse_sort
    list_reverse list_distinct list_unique list_sum list_min list_max list_avg list_count array_length array_to_string
    flatten cardinality map map_keys map_values map_extract map_extract_value map_contains map_from_entries map_entries
"""
_JSON = """
    json_extract json_extract_string json_extract_path json_extract_path_text json_value json_type json_valid
    json_exists json_contains json_array_length json_keys to_json json_object json_array
"""
FUNCTIONS = frozenset(f"{_TEXT} {_NUMBERS} {_TIMES} {_NESTED} {_JSON}".split())

_OPERATOR_KINDS = """
    ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT ARRAY_CONSTRUCTOR COMPARE_IN COMPARE_NOT_IN OPERATOR_IS_NULL
    OPERATOR_IS_NOT_NULL OPERATOR_NOT OPERATOR_COALESCE OPERATOR_TRY
"""
OPERATOR_KINDS = frozenset(_OPERATOR_KINDS.split())
"""Of nodes of the class OPERATOR."""

TYPES = frozenset(
    [
        "boolean",
        "bool",
        "tinyint",
        "smallint",
        "integer",
        "int",
        "bigint",
        "hugeint",
        "utinyint",
        "usmallint",
        "uinteger",
        "ubigint",
        "float",
        "real",
        "double",
        "decimal",
        "numeric",
        "varchar",
        "text",
        "string",
        "char",
        "bpchar",
        "blob",
        "bytea",
        "date",
        "time",
        "timestamp",
        "datetime",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
        "timestamptz",
        "interval",
        "uuid",
        "json",
        "list",
        "struct",
        "map",
    ]
) | {"timestamp with time zone"}

NOT_A_FIELD = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
        "rowid",
    ]
)
"""What SQL reads as a function, although it looks like a field. In quotes it is the field."""

GROWTH: Mapping[str, int] = {
    **dict.fromkeys(("hex", "to_hex", "base64", "to_base64", "regexp_escape"), 2),
    **dict.fromkeys(("url_encode", "nfc_normalize"), 3),
    **dict.fromkeys(("to_json", "json_object", "json_array"), 6),
}
"""How many times longer than its arguments a text may become."""
TEXT_TYPES = frozenset(["varchar", "text", "string", "char", "bpchar", "json"])
PADDING = frozenset({"lpad", "rpad", "repeat"})
"""Their second argument says how long the text becomes."""
NESTING = frozenset(
    [
        "list_value",
        "list_pack",
        "struct_pack",
        "list_concat",
        "list_cat",
        "array_concat",
        "list_append",
        "list_prepend",
        "map",
    ]
)
"""The result is a list, a record or a map of the arguments."""
JOINING = NESTING | {"||", "concat", "concat_ws", "json_object", "json_array"}
"""The result holds all arguments one after another. Of all other functions it is as long as one of them."""
