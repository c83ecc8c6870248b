"""Text of the commands about consumers. Pure."""
