"""Planning: turn a request, the state of the tables and policy into a sealed manifest, or into reasons for refusal.

Decides what a run reads, computes and replaces, in which chunks, and whether the guardrails allow it. All modules are
pure except ``input_conditions``, ``catalog_refs`` and ``rule_check``, which query the engines. The target is read
before the inputs, so that a live write in between shows up as a conflict.
"""
