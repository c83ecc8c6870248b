"""Parts shared by all commands of the command line: session, options, failures, progress, files."""
