"""The report: one run on one page, for the person who answers for its numbers. Pure: values in, HTML out.

The page needs no network and no script, reads in light, dark and print, and says in words whatever it says in colour.

::

    view.py     what a report holds; also its JSON
    markup.py   elements; whatever is not markup is escaped
    charts.py   lines and spreads as SVG
    grid.py     partitions as a calendar
    tables.py   tables that scroll on a narrow screen
    decision.py scope, people, verdict, what happens next
    changes.py  calendar, metrics, movements, columns
    values.py   distributions, sampled rows
    style.py    the style sheet
    page.py     the order of it all
    cover.py    the cover page of evidence
    deeds.py    who did what, for that page
"""
