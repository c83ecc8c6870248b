"""Compare a candidate with what main held when it was made."""
