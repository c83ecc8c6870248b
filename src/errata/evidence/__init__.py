"""Proof that leaves the project: signed heads of the audit, and evidence that is checked without ledger or lake.

::

    keys        ed25519 key pairs           dsse        exact bytes and their type under a signature
    heads       where the audit stood       members     what evidence of a run consists of
    statements  the signed index            bundle      the one file
    readme      what lies in it             verifier    judges it; also the script inside, alone in one file
"""
