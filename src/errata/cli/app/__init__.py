"""What all commands of the command line share: session, options, failures, progress, files."""
