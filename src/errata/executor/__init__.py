"""The worker: claim a chunk, keep its lease alive, have it computed and staged, record it; and the order of the steps.

What to do next is a pure function of ledger state (``decide``); the loop (``worker``) has no business rules of its own.
``pipeline`` is the one place where the seven steps are put in order. Touches Spark only through ``ports``.
"""
