"""What was started on clusters for each run."""
