"""Intent → requirements → one commit → confirm; rollback is the same machine run backwards.

Decides whether a scope may be replaced (``requirements``, ``conflict``) and carries it out (``publish``, ``settle``):
one metadata-only commit on a main that keeps moving, with an undo set that outlives expiry, and with an outcome that is
concluded by looking at the table and never from an exception. Touches the table through ``ports.PublishTable`` and
the ledger through ``ports.PublicationLog``. What the numbers were worth was decided before, by the validator.
"""
