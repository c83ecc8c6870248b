"""Decide what has to be counted so that the rules can be judged. Pure."""
