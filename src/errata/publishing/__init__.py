"""Publishing: replace partitions of a live table in one commit, and roll that back.

::

    selection, waves           which partitions, and in which order
    expected_files, conflict   detect live writes since the plan          (conflict is pure)
    table_shape, content       is it still the table that was planned?
    intent                     what one commit adds and removes           (pure)
    replacement                intent → undo set → one compare-and-swap → read the table → confirm
    carry_over                 rows that share a file with the scope
    recovery                   close intents that a killed process left open
    origins                    the publications whose rows partitions hold
    side_tables, preview_state, erasure, hazards, leftovers, sweep, set_back, late_inputs, live_writes

The outcome of a commit is read from the table, never concluded from an exception. Rollback is the same protocol with
the file sets exchanged.
"""
