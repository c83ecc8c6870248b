"""SQL of the views for readers: accepted versions, and old and new rows of a preview. Pure."""
