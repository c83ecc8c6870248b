"""Who may do what: permissions, quorum, release, break-glass, authorization of a publication."""
