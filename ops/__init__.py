"""What operations people install: alert rules, a dashboard, and the lists that both are made from."""
