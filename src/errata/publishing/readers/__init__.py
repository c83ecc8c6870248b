"""What readers of a product look at before they read."""
