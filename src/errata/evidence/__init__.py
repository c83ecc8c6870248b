"""Evidence: signed heads of the audit chain, and bundles that an auditor verifies without the ledger or the lake.

::

    keys          Ed25519 key pairs            dsse           signature over exact bytes and their type
    heads         signed heads of the chain    head_export    write heads; compare the chain with them
    members       files of a bundle            bundle         the one file
    diff_summary  what changed, stored early   verifier       checks a bundle; also ships inside it as one file
"""
