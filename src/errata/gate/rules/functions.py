"""Functions that expressions in product files may call: a closed list, by purpose. Pure.

Every function here is deterministic, independent of row order, and needs no more memory than its arguments. All others
are refused; for those people try most often, :data:`REFUSED` gives the reason.
"""

from __future__ import annotations

from collections.abc import Mapping


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROW_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "conditional": _split_names(
        "case coalesce equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif nullifzero nvl nvl2"
        " zeroifnull"
    ),
    "casts": _split_names(
        "bigint boolean cast date decimal double float int smallint string timestamp tinyint try_cast"
    ),
    "mathematics": _split_names(
        "abs acos asin atan atan2 bround cbrt ceil ceiling conv cos cosh degrees div exp expm1 factorial floor hypot"
        " ln log log1p log2 mod negative pmod positive pow power radians rint round shiftleft shiftright sign"
        " signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract width_bucket"
    ),
    "text": _split_names(
        "ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt"
        " encode endswith find_in_set format_number hex initcap instr lcase left len length levenshtein locate lower"
        " lpad ltrim luhn_check octet_length overlay position replace reverse right rpad rtrim soundex split_part"
        " startswith substr substring substring_index translate trim ucase unbase64 unhex upper"
    ),
    "regular expressions": _split_names(
        "like ilike regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace"
        " regexp_substr rlike split"
    ),
    "dates and times": _split_names(
        "add_months convert_timezone date_add date_format date_from_unix_date date_part date_sub date_trunc"
        " datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime"
        " from_utc_timestamp hour last_day make_date make_timestamp minute month monthname months_between next_day"
        " quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date"
        " to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_to_date"
        " try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear"
        " year"
    ),
    "arrays, maps and structures": _split_names(
        "aggregate array array_contains array_distinct array_except array_intersect array_join array_max array_min"
        " array_position array_remove array_size array_sort array_union arrays_overlap cardinality element_at exists"
        " filter forall get map_contains_key map_entries map_filter map_keys map_values"
        " reduce size slice sort_array struct transform transform_keys transform_values try_element_at zip_with"
    ),
    "hashes": _split_names("crc32 hash md5 sha sha1 sha2 xxhash64"),
    "JSON": _split_names("get_json_object json_array_length json_object_keys to_json"),
}
"""Functions of one row, by purpose."""

AGGREGATES = _split_names(
    "avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp kurtosis max median min"
    " percentile skewness stddev stddev_pop stddev_samp sum var_pop var_samp variance"
)
"""Functions of all rows of a partition; exact and independent of row order (floating point up to the last digits)."""

ALLOWED = frozenset[str]().union(*ROW_FUNCTIONS.values(), AGGREGATES)

LAMBDAS = _split_names(
    "aggregate array_sort exists filter forall map_filter reduce transform transform_keys transform_values zip_with"
)
"""Functions that accept a lambda (``x -> …``) as an argument."""

PATTERNS: Mapping[str, int] = {
    "regexp": 1,
    "regexp_count": 1,
    "regexp_extract": 1,
    "regexp_extract_all": 1,
    "regexp_instr": 1,
    "regexp_like": 1,
    "regexp_replace": 1,
    "regexp_substr": 1,
    "rlike": 1,
    "split": 1,
}
"""Functions that take a regular expression → position of that argument."""

PADDING = frozenset({"lpad", "rpad"})
"""Functions whose second argument is a length; it must be a literal number, not a column."""

UNREPEATABLE = _split_names(
    "curdate current_catalog current_database current_date current_schema current_time current_timestamp"
    " current_timezone current_user getdate input_file_block_length input_file_block_start input_file_name"
    " localtimestamp monotonically_increasing_id now rand randn random randstr session_user shuffle"
    " spark_partition_id sysdate uniform user uuid version"
)
"""Functions whose value depends on the clock, on chance, on the session or on how rows are spread."""

RUNS_CODE = _split_names("java_method reflect try_reflect")
"""Functions that call any code on the class path."""

_ORDER = "an aggregate that does not depend on row order"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(UNREPEATABLE, "an expression that gives the same answer every time"),
    **dict.fromkeys(
        _split_names(
            "any_value array_agg collect_list collect_set first first_value group_concat last last_value listagg max_by"
            " min_by mode string_agg"
        ),
        _ORDER,
    ),
    **dict.fromkeys(
        _split_names(
            "approx_count_distinct approx_percentile approx_quantile approx_top_k count_min_sketch percentile_approx"
        ),
        "an exact number, such as count(distinct …) or percentile(…)",
    ),
    **dict.fromkeys(RUNS_CODE, "a function of the list of allowed functions; this one runs any code"),
    **dict.fromkeys(
        _split_names("array_repeat repeat sequence space"),
        "a function that needs no more memory than its arguments",
    ),
    **dict.fromkeys(_split_names("assert_true raise_error"), "a condition, which says so by being true"),
    **dict.fromkeys(
        _split_names("explode explode_outer inline posexplode stack unnest"), "one value for a row, not several"
    ),
}
"""Commonly tried functions → the reason for refusal, as text that follows *expected*."""
