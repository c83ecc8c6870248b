"""Ratios against bare Spark, bare scripts and another tool; never timed tests.

One module per question; each is run in a process of its own by ``python -m benchmarks`` and prints Markdown. ``clock``
measures one act, ``rounds`` alternates acts, ``report`` turns samples and goals into tables, ``lake`` makes tables to
measure on, ``process`` runs whole commands.
"""
