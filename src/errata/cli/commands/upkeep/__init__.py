"""Commands for auditors and for upkeep: audit, evidence, erase, ledger, cleanup."""

from __future__ import annotations

import typer

from errata.cli.app.register import command
from errata.cli.commands.upkeep.audit import (
    audit_erase_person,
    audit_gaps,
    audit_head,
    audit_keygen,
    audit_log,
    audit_verify,
)
from errata.cli.commands.upkeep.cleanup import cleanup
from errata.cli.commands.upkeep.erase import erase_add, erase_prove, erase_redact, erase_where
from errata.cli.commands.upkeep.evidence import evidence_export, evidence_verify
from errata.cli.commands.upkeep.ledger import ledger_create, ledger_roles
from errata.cli.commands.upkeep.note import note

PANEL = "Audit and upkeep"


def register(app: typer.Typer) -> None:
    """Add the commands of this section."""
    audit = typer.Typer(help="Read, verify and sign the audit log.", rich_markup_mode=None)
    command(audit, "verify")(audit_verify)
    command(audit, "gaps")(audit_gaps)
    command(audit, "log")(audit_log)
    command(audit, "head")(audit_head)
    command(audit, "keygen")(audit_keygen)
    command(audit, "erase-person")(audit_erase_person)
    app.add_typer(audit, name="audit", rich_help_panel=PANEL)
    evidence = typer.Typer(help="Export and verify the evidence of a run.", rich_markup_mode=None)
    command(evidence, "export")(evidence_export)
    command(evidence, "verify")(evidence_verify)
    app.add_typer(evidence, name="evidence", rich_help_panel=PANEL)
    erase = typer.Typer(help="Keep erased data subjects out of corrections.", rich_markup_mode=None)
    command(erase, "add")(erase_add)
    command(erase, "where")(erase_where)
    command(erase, "redact")(erase_redact)
    command(erase, "prove")(erase_prove)
    app.add_typer(erase, name="erase", rich_help_panel=PANEL)
    ledger = typer.Typer(help="Set up the ledger database.", rich_markup_mode=None)
    command(ledger, "create")(ledger_create)
    command(ledger, "roles")(ledger_roles)
    app.add_typer(ledger, name="ledger", rich_help_panel=PANEL)
    command(app, "note", PANEL)(note)
    command(app, "cleanup", PANEL)(cleanup)
