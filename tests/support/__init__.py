"""What several suites share: a small governed lake, and the checker that never trusts the product."""
