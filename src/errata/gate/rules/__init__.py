"""Parse and check the SQL rules of product files before anything runs. Pure."""
