"""Validation: checks become one grouped aggregate per scan, numbers become a verdict, old and new become a diff.

``compile`` turns the checks of a run manifest into a measure plan (pure); an engine behind ``ports`` runs it and
returns numbers; ``judge`` holds the numbers against thresholds (pure). Numbers are stored before they are judged, so
another threshold never needs another scan. Making the candidate, storing numbers and moving the run are left to others.
"""
