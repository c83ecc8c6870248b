"""The vocabulary of Errata: frozen values and the rules that belong to them.

Standard library only, no I/O, no clock, no randomness. Every other package may import this one; it imports none.
"""
