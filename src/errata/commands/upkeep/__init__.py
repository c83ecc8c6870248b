"""Commands for auditors and for upkeep: evidence, erase, cleanup."""
