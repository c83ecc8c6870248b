"""Send messages: webhooks, Slack, e-mail, files and commands."""
