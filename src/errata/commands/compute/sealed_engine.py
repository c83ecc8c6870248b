"""Refuse to compute or measure with another engine than the one a run was sealed for.

Publishing, rolling back and cleaning up commit metadata and work with either: it must always be possible to roll back
what is in the table.
"""

from __future__ import annotations

from errata.jars import require_sealed_jars
from errata.publishing.messages import plan_again_command
from errata.workspace import RunContext


def require_sealed_engine(context: RunContext) -> None:
    """Raise ``SetupError`` if a jar that the run was sealed with is not one of this installation."""
    manifest = context.manifest
    again = plan_again_command(manifest.product, context.run_id, manifest.target.grain, manifest.partitions)
    require_sealed_jars(context.run_id, manifest.code.jars, context.engines.available_jars, again)
