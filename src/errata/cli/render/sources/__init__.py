"""Text of commands about recordings. Pure."""
