"""Turn views into text, one module per view. Pure."""
