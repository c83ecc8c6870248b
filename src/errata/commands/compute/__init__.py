"""Commands that compute: run, pause, resume, cancel, retry."""
