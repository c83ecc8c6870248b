"""Consumers of a product, and what is owed to them after a decision or a commit. Pure.

declaration   channels, databases and consumers as errata.yaml declares them
partition_text   a partition in SQL, a pattern, a URL or a command
redis_keys    which keys a pattern means for some partitions
recovery_state   whether consumers show what was published
watermark     how far an incremental job has read, and where it starts again
hold          the time that a consumer gets before a publication
outbox        what is owed, by which key, and in which order it is paid
checkpoint    a checkpoint of a streaming query
stream        where a stream stops, and how a copy of its checkpoint brings it past a publication
readiness     may a partition be read now, and at which snapshot
"""
