"""What metrics are made of: counts and sums of the ledger, made by the database, and the last readings."""
