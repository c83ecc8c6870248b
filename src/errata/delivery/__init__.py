"""Delivery: what follows a decision or a commit is owed with it, and paid afterwards.

::

    obligations                what a plan, an approval, a publication or a rollback owes
    payment                    settle, claim, pay, record; bounded in time
    handlers                   which function pays which effect
    attempts                   how often an effect is tried, and how long it waits in between
    correction_rows, current_view, ready_partitions, alarms, watermarks, recoveries, stream_checkpoints
                               one module for each effect

Items are written by the ledger in the transaction of their cause. Paying one is at least once, always with the same
key. A payer that dies is followed by another, and one that lost its lease cannot record anything.
"""
