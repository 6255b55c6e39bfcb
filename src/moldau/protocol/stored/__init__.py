"""Records that are kept in logs and files, one generated module per subject."""
