"""Values of the product and the rules that belong to them: manifest, partitions, products, runs, refs.

Pure: no I/O, no clock, no randomness. Imports only ``text``, ``errors`` and ``canonical``.
"""
