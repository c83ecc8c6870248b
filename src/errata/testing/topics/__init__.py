"""Topics, and rows that transforms emit for them, in memory."""
