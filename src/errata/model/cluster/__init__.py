"""Clusters on which workers are started: as declared, as sealed by a plan, and what was started. Pure."""
