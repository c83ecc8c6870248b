"""A message as JSON, for Slack, as plain text and as HTML. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from errata.model.consumer.message import VERSION, Message, Metric
from errata.model.diff import Movement
from errata.model.partition import fold_ranges
from errata.text.escape import escape_text
from errata.text.markup import Markup, el, raw
from errata.text.numbers import format_change, format_value, plural

_HEADS = ("", "before", "after", "change")
_MASKED = "classified, not shown"
_SLACK_HEADER = 150
_SLACK_TEXT = 2_900
_DIGEST = 12


def to_json(message: Message) -> dict[str, Any]:
    """The body of a webhook, the line of a file and the input of a command."""
    about = message.occasion
    hold, recovery = about.hold, about.recovery
    return {
        "version": VERSION,
        "id": message.id,
        "sequence": message.sequence,
        "event": about.event,
        "time": about.at,
        "consumer": message.consumer,
        "title": message.title,
        "text": message.text,
        "product": about.product,
        "table": about.table,
        "run_id": about.run_id,
        "wave": None if about.wave is None else {"number": about.wave[0], "of": about.wave[1]},
        "grain": about.grain.value,
        "partitions": {
            "count": len(about.partitions),
            "ranges": [list(pair) for pair in fold_ranges(about.grain, about.partitions)],
        },
        "reason": about.reason,
        "requested_by": about.requested_by,
        "approved_by": list(about.approved_by),
        "by": about.by,
        "manifest_digest": about.digest,
        "snapshot_id": about.snapshot_id,
        "metrics": [_metric_to_json(one) for one in about.metrics],
        "undo_until": about.undo_until or None,
        "hold": None
        if hold is None
        else {"until": hold.until, "acknowledge": bool(hold.acknowledge), "on_timeout": hold.on_timeout},
        "recovery": None
        if recovery is None
        else {
            "seconds": recovery.seconds,
            "problem": recovery.problem or None,
            "differences": [
                {"partition": one.partition, "shown": one.shown, "expected": one.expected}
                for one in recovery.differences
            ],
            "more_differences": recovery.more,
        },
        "commands": dict(message.commands),
    }


def _metric_to_json(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "masked": metric.masked,
        "before": metric.before,
        "after": metric.after,
        "percent": metric.percent,
        "partitions": [
            {"partition": one.partition, "before": one.before, "after": one.after, "percent": one.percent}
            for one in metric.partitions
        ],
        "more_partitions": metric.more,
    }


def to_slack(message: Message) -> dict[str, Any]:
    """The body of a Slack-compatible incoming webhook; ``text`` is for notifications and for other programs."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(escape_text(message.title), _SLACK_HEADER)}},
        _section(_escape_slack(message.text)),
    ]
    rows = list(list_rows(message))
    if rows:
        table = _cut(_escape_slack(_align(rows)), _SLACK_TEXT - 10)
        blocks.append(_section(f"```\n{table}\n```"))
    facts = "\n".join(f"*{name}*  {_escape_slack(value)}" for name, value in list_facts(message))
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": _cut(facts, _SLACK_TEXT)}]})
    return {"text": _escape_slack(f"{message.title}. {message.text}"), "blocks": blocks}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, _SLACK_TEXT)}}


def _escape_slack(text: str) -> str:
    """Text in which nothing is a link, a mention or a channel."""
    plain = "\n".join(escape_text(line) for line in text.split("\n"))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("```", "'''")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def to_text(message: Message) -> str:
    """Plain text, for e-mail."""
    lines = [escape_text(message.title), "", *_wrap(escape_text(message.text))]
    rows = list(list_rows(message))
    lines += ["", _align(rows)] if rows else []
    facts = list(list_facts(message))
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name:<{width}}  {escape_text(value)}" for name, value in facts)]
    return "\n".join(lines) + "\n"


def _wrap(text: str, width: int = 78) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def to_html(message: Message) -> str:
    """A small page without scripts, pictures and addresses, for e-mail."""
    rows = list(list_rows(message))
    table: Markup | None = None
    if rows:
        head = el("tr", [el("th", word, style=_cell_style(n)) for n, word in enumerate(_HEADS)])
        body = [
            el(
                "tr",
                [
                    el("td", cell, style=_cell_style(n) + ("" if row[0][:1] == " " else "font-weight:600;"))
                    for n, cell in enumerate(row)
                ],
            )
            for row in rows
        ]
        table = el("table", head, body, style="border-collapse:collapse;margin:16px 0;")
    facts = [
        el("tr", el("td", name, style="padding:2px 16px 2px 0;color:#57606a;"), el("td", value, style="padding:2px 0;"))
        for name, value in list_facts(message)
    ]
    page = el(
        "html",
        el("head", el("meta", charset="utf-8"), el("title", message.title)),
        el(
            "body",
            el("h1", message.title, style="font-size:18px;margin:0 0 8px;"),
            [el("p", sentence, style="margin:0 0 8px;") for sentence in message.sentences],
            table,
            el("table", facts, style="font-size:13px;margin-top:16px;"),
            style="font-family:sans-serif;font-size:15px;line-height:1.45;color:#1f2328;max-width:640px;margin:16px;",
        ),
        lang="en",
    )
    return raw("<!doctype html>\n") + page + "\n"


def _cell_style(n: int) -> str:
    side = "text-align:left;" if n == 0 else "text-align:right;font-variant-numeric:tabular-nums;"
    return f"{side}padding:4px 16px 4px 0;border-bottom:1px solid #d0d7de;white-space:pre;"


def list_rows(message: Message) -> Iterator[tuple[str, str, str, str]]:
    """The table of metrics: a row for each metric, and indented rows for partitions."""
    for metric in message.occasion.metrics:
        if metric.masked:
            yield f"{escape_text(metric.name)} ({_MASKED})", "", "", ""
            continue
        total = Movement("", metric.before, metric.after, None, metric.percent)
        single = len(metric.partitions) == 1 and not metric.more
        if single and not metric.has_total:
            total = metric.partitions[0]
        has_numbers = metric.has_total or single
        yield escape_text(metric.name), *(_cells(total) if has_numbers else ("", "", ""))
        for one in () if single else metric.partitions:
            yield f"  {escape_text(one.partition)}", *_cells(one)
        if metric.more:
            yield f"  and {plural(metric.more, 'other')}", "", "", ""


def _cells(one: Movement) -> tuple[str, str, str]:
    if one.before == one.after:
        change = "same"
    else:
        change = format_change(one.before, one.after) if one.percent is not None else "–"
    return _format_number(one.before), _format_number(one.after), change


def _format_number(value: str | None) -> str:
    return "none" if value is None else format_value(value)


def _align(rows: Sequence[tuple[str, str, str, str]]) -> str:
    listed = [_HEADS, *rows]
    widths = [max(len(row[n]) for row in listed) for n in range(len(_HEADS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in listed
    )


def list_facts(message: Message) -> Iterator[tuple[str, str]]:
    """What identifies the correction and the message, by name."""
    about = message.occasion
    yield "Run", about.run_id
    yield "Table", about.table
    people = [f"requested by {about.requested_by}"] if about.requested_by else []
    people += [f"approved by {' and '.join(about.approved_by)}"] if about.approved_by else []
    done = {"published": "published", "rolled_back": "rolled back"}.get(about.event)
    people += [f"{done} by {about.by}"] if about.by and done else []
    if people:
        yield "People", ", ".join(people)
    if about.digest:
        yield "Plan", f"digest {about.digest[:_DIGEST]}"
    if about.snapshot_id:
        yield "Snapshot", about.snapshot_id
    for purpose, command in message.commands.items():
        yield purpose.capitalize(), command
    yield "Message", f"{message.sequence} to {message.consumer}, {message.id}"


def build_mail_id(message: Message) -> str:
    """The Message-ID of the e-mail: the same for every attempt, so that mail programs show one."""
    return f"<{hashlib.sha256(message.id.encode()).hexdigest()[:32]}@errata.invalid>"
