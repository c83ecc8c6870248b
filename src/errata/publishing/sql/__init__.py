"""SQL of the views that a publication leaves for readers. Pure."""
