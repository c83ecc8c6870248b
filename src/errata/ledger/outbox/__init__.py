"""What is owed after a decision or a commit.

following  owed because of audit entries
items      written and settled in the transaction of their cause
payments   claimed, paid, failed, retried and waived
item_rows  rows as records, and the windows of a queue
"""
