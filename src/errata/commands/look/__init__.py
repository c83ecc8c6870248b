"""Commands that look and change nothing: status, why, runs, history, quarantine."""
