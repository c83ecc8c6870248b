"""Tables of the ledger, and the constraints that its triggers enforce."""
