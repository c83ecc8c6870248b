"""Read YAML with line numbers and report errors clearly."""
