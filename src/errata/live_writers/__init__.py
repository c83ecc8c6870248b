"""Live jobs that write to the table of a run: freeze, lease, rebase."""
