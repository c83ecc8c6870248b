"""Print the command that starts a worker on a cluster: a run and a project in, one command line out.

``errata submit`` starts nothing. Pure except :mod:`errata.submit.application`, which the printed command runs there.
"""
