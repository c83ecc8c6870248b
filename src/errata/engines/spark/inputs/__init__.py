"""Read the pinned inputs of a run as data frames."""
