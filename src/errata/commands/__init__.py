"""The commands, in the sections of ``errata --help``; mostly one module per command.

::

    plan      try_, plan, show, approve          before any work
    compute   run, control                       workers: join, pause, resume, cancel, retry
    publish   validate, diff, report, release,   from the gate to main and back
              publish, publish_wait, preview,
              rollback
    campaign  plan, show, decide, seal, run,     several products, approved once
              status, rollback, dbt_steps
    consumers check, confirm                     those who read what is published
    sources   import_, record, recordings        files that are recorded before a run reads them
    look      status, why, why_rows, history,    change nothing
              quarantine
    upkeep    cleanup, erase, evidence
    next_step, situation                         the command to type next, and what decides it

A command checks the actor's permissions, runs the steps in order, and returns a view. The rules are in the packages
below: ``planning``, ``approval``, ``worker``, ``gate``, ``publishing``, ``live_writers``, ``evidence``.
"""
