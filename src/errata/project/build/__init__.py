"""Build products and settings from the sections of project files."""
