"""Build what starts a worker on a cluster, from a run and a project: a command to print, or an order for its API.

Pure except :mod:`errata.submit.here`, which finds paths of this machine, and :mod:`errata.submit.application`, which
runs on the cluster.
"""
