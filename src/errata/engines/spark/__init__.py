"""Everything that imports pyspark.

``columns`` builds expressions (partition text, scope predicates, content hashes), ``inputs`` reads pinned inputs,
``measure`` runs a measure plan in one grouped scan per table, ``diff`` compares two snapshots of the target. Sessions
given to these modules speak UTC and ANSI SQL; nothing here decides whether a number is good.
"""
