"""Source files, local or in an object store: listed and pinned by path, size and version, never read."""
