"""Lineage events: owed by audit entries, written from the record, sent through the outbox."""
