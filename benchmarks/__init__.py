"""Ratios against bare Spark and bare scripts, measured in one run; never timed tests.

``make bench`` runs all of them and prints Markdown: wall and CPU seconds (this process and its JVM), median and worst
of the repetitions, alternating order, and the load of the machine beside each number.
"""
