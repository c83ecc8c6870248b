"""Errata in Airflow: plan, wait for people, compute, judge, publish; and write beside a correction.

Every task starts the ``errata`` program with ``--json`` and reads its answer. State lives in Errata's ledger; XCom
carries run ids only.
"""

__version__ = "0.1.0"
