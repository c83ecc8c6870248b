"""Build the command that starts a worker on a cluster, from a run and a project.

``errata submit`` starts nothing. Pure except :mod:`errata.submit.application`, which the printed command runs on the
cluster.
"""
