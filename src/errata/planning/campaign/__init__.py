"""Plan a campaign: its members, and what is sealed of what they read. Pure."""
