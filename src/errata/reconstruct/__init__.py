"""Rebuild events that were never recorded, in a transform. Frames in, frame out; nothing is computed here.

The rules are declared in the product file (``reconstruct:``), sealed with the plan, and known to the gate::

    from errata import reconstruct

    def events(ctx, retry, api):
        return reconstruct.rebuild(ctx, {"retry": retry, "api": to_events(api)})
"""

from __future__ import annotations

from errata.reconstruct.rebuild import rebuild

__all__ = ["rebuild"]
