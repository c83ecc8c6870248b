"""Commands from the gate to main and back: validate, diff, report, release, publish, rollback."""
