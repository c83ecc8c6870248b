"""Source files, local or on an object store: listed and pinned by path, size and version; only footers are read."""
