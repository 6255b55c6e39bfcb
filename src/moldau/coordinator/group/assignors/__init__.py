"""The server's assignors: which member of a group shall have which partition."""
