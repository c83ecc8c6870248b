"""The commands: one module per command, in the sections of ``errata --help``.

::

    plan      try_, plan, show, approve          before any work
    compute   run, control                       workers: join, pause, resume, cancel, retry
    publish   validate, diff, report, release,   from the gate to main and back
              publish, preview, rollback
    look      status, why, history, quarantine   change nothing
    upkeep    cleanup, erase, evidence
    next_step                                    the command to type next, for every screen

A command checks who asks, puts the steps in order, and answers a view. The rules are in the packages below:
``planning``, ``approval``, ``worker``, ``gate``, ``publishing``, ``live_writers``, ``evidence``.
"""
