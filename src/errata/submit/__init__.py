"""The command that starts a worker on somebody's cluster: a run and a project in, one command line out.

``errata submit`` prints and starts nothing: who may start what on a cluster, and with which credentials, is the
cluster's business. Pure but for :mod:`errata.submit.application`, which is what the printed command runs there.
"""
