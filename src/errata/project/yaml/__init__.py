"""Read YAML with line numbers, and say clearly what is wrong with it."""
