"""Tables of the ledger, and the rules that its triggers enforce."""
