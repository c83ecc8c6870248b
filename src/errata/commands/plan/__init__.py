"""Commands before any work: try, plan, show, approve, decline."""
