"""The order of the steps: one module per command, and the worker that computes chunks.

::

    planning      facts → verdicts → sealed manifest → pins        publishing   requirements → one replacement
    deciding      approve, decline, pause, resume, cancel, retry    undoing      the same, backwards
    working       claim, heartbeat, compute, stage, adopt           reporting    show, status
    validating    candidate → measurements → verdict                cleaning     refs that nothing needs any more
    differing     old against new                                   settling     open intents, guards, leases
                                                                    explaining   why

Steps do not import each other; these modules put them in order over a ``Desk``, which holds the project, the ledger and
engines that start when they are used. Rules live in the steps. Spark is reached only through ``ports``.
"""
