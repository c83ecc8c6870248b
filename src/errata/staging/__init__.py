"""Where a run's output lives until it is accepted: attempts on a branch of the target, adopted by the ledger.

Decides which snapshots make up the staged output, whether an attempt stayed inside its chunk, and what a candidate is
made of. Touches nothing itself: the branch is written by the engine behind :mod:`errata.staging.ports`. What becomes
of the candidate is for the validator to measure and for the publisher to release.
"""
