"""What is computed from what: partitions, products, and models of dbt. Pure."""
