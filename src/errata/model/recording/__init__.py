"""Recordings: raw files that were copied once, hashed and kept, and that plans pin. Pure."""
