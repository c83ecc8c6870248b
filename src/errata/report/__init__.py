"""The HTML report of a run, for the person responsible for its numbers. Pure: values in, HTML out.

The page needs no network and no script, is readable in light, dark and print, and says in words whatever it says in
colour.

::

    page       order of the sections       decision   scope, people, verdict, next step
    changes    calendar, metrics, columns  formatting distributions, sampled rows
    charts     lines and spreads as SVG    calendar   partitions as a grid
    copies     a row for each copy in a warehouse
    html       elements, escaped; tables   style      the style sheet
    evidence_cover, timeline               cover page of an evidence bundle
"""
