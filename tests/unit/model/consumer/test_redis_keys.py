"""Which keys a Redis pattern means."""

from __future__ import annotations

import re
import time
from fnmatch import translate

from hypothesis import given
from hypothesis import strategies as st

from errata.model.consumer.redis_keys import compile_pattern

WORDS = st.text(alphabet="ab*?[]\\^-é\n:", max_size=4)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS, st.text(alphabet="ab:", max_size=2))
def test_partitions_match_exactly_themselves(partitions: list[str], key: str, prefix: str) -> None:
    """Between literal texts a key matches if and only if it holds one of the partitions."""
    keys = compile_pattern(prefix + "<{partition}>", partitions)
    assert bool(keys.fullmatch(f"{prefix}<{key}>")) == (key in partitions)


@given(st.lists(st.text(alphabet="ab", max_size=5), min_size=1, max_size=8), st.text(alphabet="ab", max_size=12))
def test_the_tree_means_the_plain_list(partitions: list[str], key: str) -> None:
    """Also where partitions begin with one another and the pattern has stars around them."""
    plain = any(re.fullmatch(translate(f"*a{name}b*"), key) for name in partitions)
    assert bool(compile_pattern("*a{partition}b*", partitions).fullmatch(key)) == plain


def test_thousands_of_partitions_cost_no_more_than_a_few() -> None:
    """A hundred thousand keys are matched against two thousand days within seconds."""
    days = [f"20{y}-{m:02}-{d:02}" for y in range(20, 26) for m in range(1, 13) for d in range(1, 29)]
    keys = compile_pattern("rev:{partition}:*", days)
    started = time.monotonic()
    assert sum(bool(keys.fullmatch(f"rev:20{n % 90:02}-01-05:{n}")) for n in range(100_000)) == 6_666
    assert time.monotonic() - started < 5


def test_values_that_begin_with_one_another_do_not_break_it() -> None:
    """However many there are."""
    values = ["a" * n for n in range(1, 800)]
    keys = compile_pattern("{partition}:x", values)
    assert keys.fullmatch("a" * 799 + ":x")
    assert not keys.fullmatch("a" * 800 + ":x")
