"""Detect regular expressions with catastrophic backtracking, by how many ways they can match the same text. Pure.

A backtracking matcher such as Java's tries every way before it gives up. Where one repeated part can match the same
text in two ways, the number of ways doubles with every repetition. Nested repeats (``(a+)+``) and overlapping
alternatives under a repeat (``(a|ab|b)*``) have this in common, and it is decided exactly here: the characters of the
pattern are states (Glushkov's automaton), and a state that two different paths of the same text lead back to is the
proof.

Adjacent repeats of the same characters (``\\d+\\d*``) multiply the ways instead; they are refused as well, as are more
than two repeats that can match the same text in turn (``^.*a.*b.*c``). A pattern that may begin anywhere is tried from
every position, which counts as one more repeat. Java recurses once for every round of a repeated group, so a group may
repeat only a bounded number of times; only single characters may repeat without bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from errata.gate.rules.regex_tree import LAST_CODE_POINT, Alternatives, Assertion, Node, Repeat, Sequence, Spans, Symbol

_COPIES = 6  # a count up to this is unrolled; a larger one is treated as unbounded, which is stricter
_FIXED_COPIES = 40  # the same for {n}, which is unambiguous
_MOST_STATES = 600
_MOST_PAIRS = 60_000
_MOST_LOOPS = 2
_MOST_ROUNDS = 500  # rounds of nested groups, multiplied: a thread's stack allows a few thousand
_MOST_COMPARED = 60

_AMBIGUOUS = "a repeated part can match the same text in two ways, so the time doubles with every character"
_ADJACENT = "two long repeats that can match the same characters stand next to each other"
_DEEP = (
    f"a group repeats without end or more than {_MOST_ROUNDS} times, and a long text would exhaust Java's stack; repeat"
    " one character or class such as [a-z-]*, or give a bound such as {0,50}"
)
_PILE = f"more than {_MOST_LOOPS} long repeats can match the same characters"
_PILE_ANYWHERE = f"{_PILE} (a pattern that does not begin with ^ is tried from every place, which counts as one)"
_TOO_LARGE = "it is too large to be judged"


class _TooLarge(Exception):
    pass


@dataclass(slots=True)
class _Automaton:
    """Glushkov automaton: one state per character of the pattern. ``doubled`` are steps that two repeats both allow."""

    spans: list[Spans] = field(default_factory=list)
    steps: list[set[int]] = field(default_factory=list)
    doubled: set[tuple[int, int]] = field(default_factory=set)

    def state(self, spans: Spans) -> int:
        if len(self.spans) >= _MOST_STATES:
            raise _TooLarge
        self.spans.append(spans)
        self.steps.append(set())
        return len(self.spans) - 1

    def join(self, before: Iterable[int], after: Iterable[int]) -> None:
        after = tuple(after)
        for one in before:
            for other in after:
                if other in self.steps[one]:
                    self.doubled.add((one, other))
                self.steps[one].add(other)


@dataclass(frozen=True, slots=True)
class _Fragment:
    """Part of an automaton: its first and last states, and whether it can match the empty text."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    optional: bool = True


def find_cost_flaw(tree: Node) -> str | None:
    """What makes the pattern too costly; None if it is safe."""
    try:
        return (
            _find_ambiguity(_build_automaton(tree))
            or _find_pile_up(tree)
            or (_DEEP if _count_rounds(tree) > _MOST_ROUNDS else None)
        )
    except (_TooLarge, RecursionError):
        return _TOO_LARGE


def _build_automaton(tree: Node) -> _Automaton:
    made = _Automaton()
    _build_fragment(made, tree)
    return made


def _build_fragment(made: _Automaton, node: Node) -> _Fragment:
    match node:
        case Symbol(spans):
            state = made.state(spans)
            return _Fragment((state,), (state,), optional=not spans)
        case Assertion(body):
            # the body of a look-around reads the same text as what follows it, and no state comes after it
            return _Fragment(_build_fragment(made, body).first) if body is not None else _Fragment()
        case Alternatives(options):
            pieces = [_build_fragment(made, option) for option in options]
            return _Fragment(
                tuple(s for piece in pieces for s in piece.first),
                tuple(s for piece in pieces for s in piece.last),
                any(piece.optional for piece in pieces),
            )
        case Sequence(parts):
            return _chain_fragments(made, (_build_fragment(made, part) for part in parts))
        case Repeat(body, least, most):
            return _repeat_fragment(made, body, least, most)


def _chain_fragments(made: _Automaton, pieces: Iterable[_Fragment]) -> _Fragment:
    whole = _Fragment()
    for piece in pieces:
        made.join(whole.last, piece.first)
        whole = _Fragment(
            (*whole.first, *piece.first) if whole.optional else whole.first,
            (*whole.last, *piece.last) if piece.optional else piece.last,
            whole.optional and piece.optional,
        )
    return whole


def _repeat_fragment(made: _Automaton, body: Node, least: int, most: int | None) -> _Fragment:
    if most == 0:
        return _Fragment()
    if most is None or most > (_FIXED_COPIES if least == most else _COPIES):
        piece = _build_fragment(made, body)
        made.join(piece.last, piece.first)
        return _Fragment(piece.first, piece.last, piece.optional or least == 0)

    def copies() -> Iterator[_Fragment]:
        for n in range(most):
            piece = _build_fragment(made, body)
            yield _Fragment(piece.first, piece.last, piece.optional or n >= least)

    return _chain_fragments(made, copies())


def _find_ambiguity(made: _Automaton) -> str | None:
    masks = _build_masks(made.spans)
    loop_of = _find_loops(made.steps)
    for one, other in made.doubled:
        if loop_of.get(one) is not None and loop_of.get(one) == loop_of.get(other):
            return _AMBIGUOUS
    for members in _group_loops(loop_of):
        if _is_ambiguous(members, made.steps, masks):
            return _AMBIGUOUS
    endless = {state for state, steps in enumerate(made.steps) if state in steps}
    for one in endless:
        for other in made.steps[one] & endless - {one}:
            if masks[one] & masks[other] and loop_of[one] != loop_of[other]:
                return _ADJACENT
    return None


def _find_pile_up(tree: Node) -> str | None:
    """Flaw of a pattern whose matching time grows faster than the square of the text's length."""
    body = _drop_tail(tree)
    is_bound = _is_anchored(tree)
    made = _build_automaton(body if is_bound else Sequence((Repeat(Symbol(((0, LAST_CODE_POINT),)), 0, None), body)))
    if _find_longest_chain(made.steps, _build_masks(made.spans), _find_loops(made.steps)) <= _MOST_LOOPS:
        return None
    return _PILE if is_bound else _PILE_ANYWHERE


def _drop_tail(tree: Node) -> Node:
    """Drop an unbounded repeat at the end: once it is reached the text matches, and nothing is tried again."""
    match tree:
        case Sequence((*before, Repeat(Symbol() as symbol, least, None))) if before:
            return Sequence((*before, Repeat(symbol, least, least)))
    return tree


def _is_anchored(node: Node) -> bool:
    """Whether the pattern can match only at the beginning of the text."""
    match node:
        case Assertion(_, begins):
            return begins
        case Sequence(parts):
            ahead = next((part for part in parts if part not in (Sequence(()), Assertion())), None)
            return ahead is not None and _is_anchored(ahead)
        case Alternatives(options):
            return all(_is_anchored(option) for option in options)
        case _:
            return False


def _count_rounds(node: Node) -> float:
    """Maximum rounds of nested groups in a match, which is how deep Java recurses."""
    match node:
        case Repeat(Symbol(), _, _):
            return 1
        case Repeat(body, _, most):
            return _count_rounds(body) * (inf if most is None else max(most, 1))
        case Sequence(parts) | Alternatives(parts):
            return max((_count_rounds(part) for part in parts), default=1)
        case Assertion(body) if body is not None:
            return _count_rounds(body)
        case _:
            return 1


def _build_masks(spans: list[Spans]) -> list[int]:
    """Encode each set as bits, one bit per range of characters that no set distinguishes."""
    edges = sorted({edge for one in spans for low, high in one for edge in (low, high + 1)})
    bits = {edge: 1 << n for n, edge in enumerate(edges)}
    found = []
    for one in spans:
        mask = 0
        for low, high in one:
            mask |= bits[high + 1] - bits[low]
        found.append(mask)
    return found


def _find_loops(steps: list[set[int]]) -> dict[int, int]:
    """Map states to loops (strongly connected components), by Tarjan's algorithm without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: dict[int, int] = {}
    for root in range(len(steps)):
        if root in index:
            continue
        work = [(root, iter(sorted(steps[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, ahead = work[-1]
            following = next(ahead, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == index[state]:
                    members: list[int] = []
                    while not members or members[-1] != state:
                        members.append(stack.pop())
                    on_stack -= set(members)
                    if len(members) > 1 or state in steps[state]:
                        found |= dict.fromkeys(members, state)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sorted(steps[following]))))
            elif following in on_stack:
                low[state] = min(low[state], index[following])
    return found


def _group_loops(loop_of: dict[int, int]) -> list[set[int]]:
    groups: dict[int, set[int]] = {}
    for state, loop in loop_of.items():
        groups.setdefault(loop, set()).add(state)
    return list(groups.values())


def _is_ambiguous(members: set[int], steps: list[set[int]], masks: list[int]) -> bool:
    """Whether two paths can diverge in this loop and meet again after reading the same text."""
    inside = {state: [s for s in steps[state] if s in members] for state in members}
    todo = [(state, state) for state in members]
    seen = set(todo)
    while todo:
        pair = todo.pop()
        for one in inside[pair[0]]:
            for other in inside[pair[1]]:
                if not masks[one] & masks[other]:
                    continue
                if one == other and pair[0] != pair[1]:
                    return True  # both paths started in one state and are in one state again
                following = (min(one, other), max(one, other))
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
                    if len(seen) > _MOST_PAIRS:
                        raise _TooLarge
    return False


def _find_longest_chain(steps: list[set[int]], masks: list[int], loop_of: dict[int, int]) -> int:
    """Length of the longest chain of loops that can match the same text in turn; the time grows with that power."""
    groups = {loop_of[next(iter(members))]: members for members in _group_loops(loop_of)}
    if len(groups) > _MOST_COMPARED:
        raise _TooLarge
    readable = {loop: _union_masks(masks, members) for loop, members in groups.items()}
    ahead = {
        loop: {
            other
            for other in groups
            if other != loop
            and _has_shared_path(members, groups[other], readable[loop] & readable[other], steps, masks)
        }
        for loop, members in groups.items()
    }
    depth: dict[int, int] = {}
    todo = list(groups)
    while todo:
        loop = todo[-1]
        missing = [other for other in ahead[loop] if other not in depth]
        if missing:
            todo += missing
        else:
            todo.pop()
            depth[loop] = 1 + max((depth[other] for other in ahead[loop]), default=0)
    return max(depth.values(), default=0)


def _union_masks(masks: list[int], members: Iterable[int]) -> int:
    united = 0
    for state in members:
        united |= masks[state]
    return united


def _has_shared_path(before: set[int], after: set[int], both: int, steps: list[set[int]], masks: list[int]) -> bool:
    """Whether a path leads from one loop to a later one, reading only characters that both can read."""
    todo, seen = list(before), set(before)
    while todo:
        for state in steps[todo.pop()]:
            if state in seen or not masks[state] & both:
                continue
            if state in after:
                return True
            seen.add(state)
            todo.append(state)
    return False
