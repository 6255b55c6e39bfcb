"""A share group's consumer inside: membership, sessions, fetches, acknowledgements."""
