"""Consumers of a product, and what is owed to them after a decision or a commit. Pure.

declaration   channels, databases and consumers as errata.yaml declares them
outbox        what is owed, by which key, and in which order it is paid
checkpoint    a checkpoint of a streaming query
stream        where a stream stops, and how a copy of its checkpoint brings it past a publication
"""
