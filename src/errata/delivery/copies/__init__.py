"""Copies of a target in warehouses: they follow what the lake has accepted.

::

    declared_copies    a copy as the product declares it now, with its columns
    accepted_rows      what is accepted now, partition by partition, and its rows
    copy_delivery      pay ``copy``: settle earlier attempts, load, swap, read back
    receipts           what a delivery puts on record
    linked_tables      pay ``copy`` for a table that reads the lake's own metadata
    lake_comparison    compare the lake with each copy
    baseline           accept what a copy holds before its first delivery
    run_copies         what status says about the copies of a run
"""
