"""The commands of `errata`, in the sections of its help."""
