"""People in the ledger: pseudonyms, and text that can be erased."""
