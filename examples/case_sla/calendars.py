"""Public holidays of five jurisdictions in two versions: as they were known when 2025 began, and as they turned out.

Three days were declared or recognised too late for the first version. A report that says what *should have been true*
uses the second one (``reference: corrected_truth``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

ZONES = {
    "US-NY": "America/New_York",
    "US-IL": "America/Chicago",
    "BR-SP": "America/Sao_Paulo",
    "DE-BE": "Europe/Berlin",
    "SG": "Asia/Singapore",
}
AS_RECORDED = "v2025-01"
RESTATED = "v2026-06-restated"
FIRST, LAST = date(2024, 11, 1), date(2026, 4, 30)

_US = {
    "Veterans Day": ("2024-11-11", "2025-11-11"),
    "Thanksgiving Day": ("2024-11-28", "2025-11-27"),
    "Christmas Day": ("2024-12-25", "2025-12-25"),
    "New Year's Day": ("2025-01-01", "2026-01-01"),
    "Martin Luther King Jr. Day": ("2025-01-20", "2026-01-19"),
    "Washington's Birthday": ("2025-02-17", "2026-02-16"),
    "Memorial Day": ("2025-05-26",),
    "Juneteenth": ("2025-06-19",),
    "Independence Day": ("2025-07-04",),
    "Labor Day": ("2025-09-01",),
    "Columbus Day": ("2025-10-13",),
}
HOLIDAYS = {
    "US-NY": _US,
    "US-IL": _US,
    "BR-SP": {
        "Proclamação da República": ("2024-11-15",),
        "Natal": ("2024-12-25", "2025-12-25"),
        "Confraternização Universal": ("2025-01-01", "2026-01-01"),
        "Carnaval": ("2025-03-03", "2025-03-04", "2026-02-16", "2026-02-17"),
        "Sexta-feira Santa": ("2025-04-18", "2026-04-03"),
        "Tiradentes": ("2025-04-21", "2026-04-21"),
        "Dia do Trabalho": ("2025-05-01",),
        "Corpus Christi": ("2025-06-19",),
        "Revolução Constitucionalista": ("2025-07-09",),
    },
    "DE-BE": {
        "Weihnachten": ("2024-12-25", "2024-12-26", "2025-12-25", "2025-12-26"),
        "Neujahr": ("2025-01-01", "2026-01-01"),
        "Karfreitag": ("2025-04-18", "2026-04-03"),
        "Ostermontag": ("2025-04-21", "2026-04-06"),
        "Tag der Arbeit": ("2025-05-01",),
        "Christi Himmelfahrt": ("2025-05-29",),
        "Pfingstmontag": ("2025-06-09",),
        "Tag der Deutschen Einheit": ("2025-10-03",),
    },
    "SG": {
        "Christmas Day": ("2024-12-25", "2025-12-25"),
        "New Year's Day": ("2025-01-01", "2026-01-01"),
        "Chinese New Year": ("2025-01-29", "2025-01-30", "2026-02-17", "2026-02-18"),
        "Hari Raya Puasa": ("2025-03-31",),
        "Good Friday": ("2025-04-18", "2026-04-03"),
        "Labour Day": ("2025-05-01",),
        "Vesak Day": ("2025-05-12",),
        "Deepavali": ("2025-10-20",),
    },
}
DECLARED_LATE = {
    "US-NY": {"National Day of Mourning": ("2025-01-09",)},
    "US-IL": {"National Day of Mourning": ("2025-01-09",)},
    "DE-BE": {"80. Jahrestag der Befreiung": ("2025-05-08",)},
    "BR-SP": {"Consciência Negra": ("2024-11-20", "2025-11-20")},
}


def rows(version: str) -> Iterator[dict[str, object]]:
    """Every day of every jurisdiction: its zone, and what it is called when offices are closed."""
    for jurisdiction, zone in ZONES.items():
        names = dict(HOLIDAYS[jurisdiction])
        if version == RESTATED:
            names |= DECLARED_LATE.get(jurisdiction, {})
        closed = {date.fromisoformat(text): name for name, texts in names.items() for text in texts}
        for number in range((LAST - FIRST).days + 1):
            day = FIRST + timedelta(number)
            yield {
                "jurisdiction": jurisdiction,
                "zone": zone,
                "day": day,
                "is_business_day": day.weekday() < 5 and day not in closed,
                "holiday": closed.get(day),
                "version": version,
            }
