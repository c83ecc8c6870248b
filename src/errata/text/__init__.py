"""Text for people: numbers, escaping, redaction of secrets. Pure."""
