"""Put the name of a partition where a template says ``{partition}``, so that it stays one value. Pure.

Partition values come from data. In SQL the value is a bound parameter, in a Redis pattern it is escaped, in a URL it is
percent-encoded, and in a command it is one argument. ``errata check`` refuses templates that have it elsewhere; a value
that cannot be put safely raises ``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit, urlunsplit

HOLE = "{partition}"
NEAR_HOLE = re.compile(r"\{\s*partitions?\s*\}", re.IGNORECASE)
"""The hole, and spellings of it that would be left as they are."""
_SQL_HOLE = re.compile(rf"'{re.escape(HOLE)}'|{re.escape(HOLE)}")
_GLOB = re.compile(r"([\\*?\[\]^])")
_GLOB_PIECE = re.compile(r"\\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BoundSql:
    """A statement with placeholders, and their values; both go to the driver, the values never into the text."""

    text: str
    parameters: tuple[str, ...]


def bind_sql(template: str, partition: str, placeholder: str = "%s") -> BoundSql:
    """The statement with a placeholder for each hole, quoted or not.

    >>> bind_sql("SELECT v FROM t WHERE d = '{partition}' AND p LIKE '5%'", "x' OR '1'='1")
    BoundSql(text="SELECT v FROM t WHERE d = %s AND p LIKE '5%%'", parameters=("x' OR '1'='1",))
    """
    # drivers with %s read every percent sign of the text
    text = template.replace("%", "%%") if placeholder == "%s" else template
    bound, count = _SQL_HOLE.subn(lambda _: placeholder, text)
    return BoundSql(bound, (partition,) * count)


def fill_redis_pattern(template: str, partition: str) -> str:
    r"""The pattern of keys; special characters of the value match only themselves.

    >>> print(fill_redis_pattern("rev:{partition}:*", "*"))
    rev:\*:*
    """
    return template.replace(HOLE, _GLOB.sub(r"\\\1", partition))


def is_in_glob_class(template: str) -> bool:
    """Whether a hole of a Redis pattern is inside brackets or after a backslash, where no escape keeps it one value.

    >>> is_in_glob_class("rev:[{partition}]:*"), is_in_glob_class("rev:{partition}:[ab]")
    (True, False)
    """
    inside = False
    rest = template
    while rest:
        if rest.startswith(HOLE):
            if inside:
                return True
            rest = rest[len(HOLE) :]
            continue
        if rest.startswith(f"\\{HOLE}"):
            return True
        piece = _GLOB_PIECE.match(rest)
        assert piece is not None  # noqa: S101 (the rest is not empty)
        inside = (inside or piece[0] == "[") and piece[0] != "]"
        rest = rest[piece.end() :]
    return False


def fill_redis_key(template: str, partition: str) -> str:
    """The name of one key, which Redis takes literally.

    >>> fill_redis_key("rev:{partition}:total", "*")
    'rev:*:total'
    """
    return template.replace(HOLE, partition)


def fill_url(template: str, partition: str) -> str:
    """The address, with the value percent-encoded.

    >>> fill_url("https://bi.example/api/{partition}?day={partition}", "a/b&c")
    'https://bi.example/api/a%2Fb%26c?day=a%2Fb%26c'
    """
    parts = urlsplit(template)
    filled = [_fill_segment(segment, partition) for segment in parts.path.split("/")]
    query = parts.query.replace(HOLE, quote(partition, safe=""))
    return urlunsplit(parts._replace(path="/".join(filled), query=query))


def _fill_segment(segment: str, partition: str) -> str:
    if HOLE not in segment:
        return segment
    filled = segment.replace(HOLE, quote(partition, safe=""))
    # servers take these for steps in the path, encoded or not
    if unquote(filled) in ("", ".", ".."):
        raise ValueError(f"the partition {partition!r} cannot be a segment of a path")
    return filled


def is_url_template(template: str) -> bool:
    """Whether this is an address in which holes are only in segments of the path and in values of the query.

    >>> is_url_template("https://bi.example/{partition}/x?d={partition}"), is_url_template("https://{partition}.example/")
    (True, False)
    >>> is_url_template("https://bi.example/x?{partition}=1"), is_url_template("https://bi.example/#{partition}")
    (False, False)
    """
    parts = urlsplit(template)
    keys = (pair.partition("=")[0] for pair in re.split("[&;]", parts.query))
    has_place = parts.scheme in ("http", "https") and bool(parts.hostname)
    return has_place and not any(HOLE in text for text in (parts.netloc, parts.fragment, *keys))


def fill_command(template: Sequence[str], partition: str) -> tuple[str, ...]:
    """The arguments; a value that the program would take for an option needs ``--`` before it.

    >>> fill_command(["./refresh.sh", "--", "{partition}"], "-x y")
    ('./refresh.sh', '--', '-x y')
    """
    if HOLE in template and "\0" in partition:
        raise ValueError(f"the partition {partition!r} cannot be an argument of a command")
    for n, word in enumerate(template):
        if word == HOLE and partition.startswith("-") and "--" not in template[:n]:
            raise ValueError(f'the partition {partition!r} looks like an option; put "--" before it in the command')
    return tuple(partition if word == HOLE else word for word in template)


def list_broken_words(template: Iterable[str]) -> list[int]:
    """Positions of words of a command in which a hole is not the whole word, or is the program.

    >>> list_broken_words(["./refresh.sh", "{partition}", "--day={partition}"])
    [2]
    """
    return [n for n, word in enumerate(template) if HOLE in word and (word != HOLE or n == 0)]
