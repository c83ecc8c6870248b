"""Step 1: a request, facts and policy become a run manifest, or a list of reasons why not.

Decides what a run will read, compute and replace, in which chunks, and whether the guardrails allow it. Everything
here except :mod:`errata.planner.ports` is pure: facts arrive as values read through read-only ports (the target
before the inputs, so that a live write in between shows up as a conflict instead of vanishing), and nothing in this
package can reach a writer. Recording the manifest is the ledger's; pinning snapshots with tags comes after it.
"""
