"""Streams that read a published table: how far they have come, and what a publication has to respect."""
