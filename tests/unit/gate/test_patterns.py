"""Which regular expressions may run, and what the kinds of personal data find."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.gate.rules.patterns import MAX_PATTERN_LENGTH, PII_PATTERNS, find_pattern_flaw, refuse_pattern
from errata.model.product import PII_KINDS

SAFE = [
    r"^[A-Z]{3}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^(?:\w+\s){0,50}\w+$",
    r"^(?:[a-z]+,){0,50}[a-z]+$",
    r"^[\w.+-]+@[\w-]+(\.[\w-]+){1,8}$",
    r"[^,]*,[^,]*,[^,]*,[^,]*$",
    r"^.*a.*b.*",
    r"\A.*a.*b",
    r"(?i)(?:^.*a.*b|^x.*y)",
    r".*EUR.*",
    r"\w+-\d+x",
    r"^.{1,400}$",
    r"^\d{8}\d{8}$",
    r"^(?=.*\d)(?=.*[a-z]).{8,}$",
    r"(?i)^(eur|usd)$",
    r"^\p{L}+$",
    r"^(?<year>\d{4})$",
    r"\Qa.b(\E",
    r"(?:ab|ac){0,50}",
    r"(?:[a-z])*([0-9])+!",
    r"(?iu)^strasse$",
    r"(?i)^straße$",
    r"[]a\-\]]",
    r"\u0041\x41\x{1F600}\t",
    r"a++b?+",
    "^$",
    "|a",
]
CATASTROPHES = [
    r"(a+)+$",
    r"(a*)*b",
    r"(a|a)*b",
    r"(a|ab|b)*c",
    r"(\w+\s?)*$",
    r"([a-zA-Z]+)*!",
    r"(x+x+)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(?:(?:a|b)*c?)*d",
    r"^(\d+,?)+$",
    r"(a?a?)*b",
    r"(a{1,100}){1,100}b",
    r"(?=(a+)+$)b",
    r"(?i)(a|A)*b",
    r"(\d|[0-9])+x",
    r"(?:\d|[0-9]){0,50}x",
    r"^(?:\w+\s?){0,50}$",
    r"^(?:a*b*){0,40}$",
    "a?" * 30 + "a" * 30,
]
POLYNOMIAL = [r"\d+\d+x", r".*.*x", r"[a-f]*[d-k]*x", r"(.*a){20}", r".*a.*b.*c.*d.*"]
POLYNOMIAL += [
    r".*a.*b",
    r"(?m)^.*a.*b",
    r"^.*a.*b.*c",
    r"(?:^|x).*a.*b",
    r"\w*-?\w*x",
    r"(?=.*a.*b)x",
    r"^.*a(?=.*b.*c)",
]
DEEP = [
    r"(?:.|\n)*y",
    r"(?:[a-z]|-)+!",
    r"^(?:[a-z]+-)*[a-z]+$",
    r"(\w+,)*",
    r"^(?:ab)+$",
    r"^(?:(?:ab){0,50}c){0,50}$",
    r"^(?:ab){0,10000}$",
    r"^(?=(?:ab)*$)a",
]
UNREADABLE = {
    "(?P<year>a)": "Java's syntax",
    "(?#note)a": "Java's syntax",
    "(a)?(?(1)b)": "Java's syntax",
    r"(a)\1": "back-references",
    r"\k<year>": "back-references",
    "(a": "not closed",
    "a)": "closes nothing",
    "[a": "not closed",
    "*a": "repeats nothing",
    "a**": "repeated",
    "a{2,1}": "goes down",
    "a{,3}": "a count such as",
    "a{99999}": "above 10,000",
    "{a": "a count such as",
    "[a&&[^b]]": "a class in it",
    "[[:alpha:]]": "a class in it",
    "[z-a]": "lower to the higher",
    "(?<=a+)b": "no bound",
    "(?x)a": "flags are",
    r"\p{Nope}": "not supported",
    r"\y": "not supported",
    r"\R": "not supported",
    r"\xZZ": "hexadecimal",
    r"\x{110000}": "not supported",
    "": "empty",
    "a" * (MAX_PATTERN_LENGTH + 1): "at most 500",
}


@pytest.mark.parametrize("pattern", SAFE)
def test_patterns_that_people_write_may_run(pattern: str) -> None:
    """Repeats that can stop in one place only are fine, within bounded groups too."""
    assert find_pattern_flaw(pattern) is None


@pytest.mark.parametrize("pattern", [*CATASTROPHES, *POLYNOMIAL, *DEEP])
def test_a_pattern_that_could_take_hours_or_exhaust_the_stack_is_refused(pattern: str) -> None:
    """Nested repeats, overlapping alternatives in a repeated group, more than two long repeats of the same characters,
    and groups without a bound, also behind a look-ahead or a flag."""
    assert re.search("too many ways|exhaust Java's stack", str(find_pattern_flaw(pattern)))


@pytest.mark.parametrize("pattern", DEEP)
def test_groups_repeat_a_bounded_number_of_times(pattern: str) -> None:
    """Java goes one call deeper with every round, and a text of a few thousand characters would exhaust its stack."""
    assert "exhaust Java's stack" in str(find_pattern_flaw(pattern))


def test_the_advice_to_begin_with_an_anchor_is_given_where_it_helps() -> None:
    """A pattern that already begins with ^ gets no such advice."""
    assert "begins with ^" in str(find_pattern_flaw(".*a.*b"))
    assert "begins with ^" not in str(find_pattern_flaw("^.*a.*b.*c"))


def test_flags_fold_characters_into_those_beyond_ascii() -> None:
    """With i and u together a k is also the sign of Kelvin, so two repeats may match the same characters."""
    assert find_pattern_flaw(r"k*\W*x") is None
    assert find_pattern_flaw(r"(?iu)k*\W*x") is not None


@pytest.mark.parametrize("pattern", UNREADABLE)
def test_what_java_does_not_read_as_meant_is_refused_by_name(pattern: str) -> None:
    """Python's own syntax, back-references, and what is no pattern at all."""
    assert UNREADABLE[pattern] in str(find_pattern_flaw(pattern))


def test_a_refusal_names_the_rule_the_pattern_and_the_key() -> None:
    """The reader knows which line to change."""
    with pytest.raises(UsageError, match=r"check shape: the pattern '\(a\+\)\+' was refused") as refusal:
        refuse_pattern("(a+)+", "check shape")
    assert refusal.value.fields["key"] == "pattern"


_PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", "a*", "b+", ".*", "[ab]*"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "{2}", "{0,30}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=5000)
@given(_PATTERNS)
def test_an_accepted_pattern_never_doubles(pattern: str) -> None:
    """A backtracking matcher, here Python's, gives up soon where an exponential pattern takes hours."""
    if find_pattern_flaw(pattern) is None:
        for text in ("a" * 32, "ab" * 16, "b" * 32):
            assert re.search(f"(?:{pattern})!", text) is None


@settings(max_examples=300, deadline=2000)
@given(st.text(alphabet=string.printable, max_size=40))
def test_any_text_is_judged(text: str) -> None:
    """For any text the answer is yes or a reason in words, and it comes soon."""
    flaw = find_pattern_flaw(text)
    assert flaw is None or flaw.strip()


FOUND = {
    "email": (["ana@example.com", "to: a.b+c@mail.example.co.uk!"], ["ana@example", "@example.com", "a at b.com"]),
    "phone": (["+49 170 1234567", "(555) 123-4567", "555-123-4567"], ["2026-01-31", "1234567890", "order 555"]),
    "iban": (["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32"], ["DE8937", "ABCD1234"]),
    "card": (["4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444"], ["1234567890123456", "4111"]),
    "ssn": (["123-45-6789"], ["000-12-3456", "123-00-4567", "123456789", "9123-45-67890"]),
    "ipv4": (["192.168.0.1", "from 10.0.0.255"], ["256.1.1.1", "1.2.3", "1.2.3.4.5", "2026.01"]),
    "ipv6": (["2001:0db8:85a3:0000:0000:8a2e:0370:7334"], ["12:34:56", "2001:db8"]),
}


@pytest.mark.parametrize("kind", PII_KINDS)
def test_each_kind_of_personal_data_finds_what_it_should(kind: str) -> None:
    """Also inside longer text; dates, short numbers and versions are left alone."""
    yes, no = FOUND[kind]
    assert [text for text in yes if not re.search(PII_PATTERNS[kind], text)] == []
    assert [text for text in no if re.search(PII_PATTERNS[kind], text)] == []


def test_the_kinds_are_those_of_the_product_file_and_safe_together() -> None:
    """What a product file may name is what there is a pattern for, and our own patterns pass the check."""
    assert tuple(PII_PATTERNS) == PII_KINDS
    assert {kind: find_pattern_flaw(pattern) for kind, pattern in PII_PATTERNS.items()} == dict.fromkeys(PII_KINDS)
