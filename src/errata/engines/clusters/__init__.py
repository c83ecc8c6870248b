"""Clusters that workers are started on: EMR Serverless, EMR, Kubernetes, standalone."""
