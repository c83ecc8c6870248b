"""Whether the partitions of a product still follow from its inputs: facts from metadata and the ledger, and the rule.

::

    judgement     the rule, pure: what speaks for a partition, compared with what is there now
    times         what is known from commit times alone, pure
    used_code     which files of the code a transform uses, pure
    claims        what runs, attestations and live jobs recorded of partitions as they are now
    sources       what the inputs hold now, and which commits changed them
    products      products together: parents before those that read them
"""

from __future__ import annotations
