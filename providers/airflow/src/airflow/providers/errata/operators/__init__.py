"""Operators: one task per command of Errata, and never one per partition."""
