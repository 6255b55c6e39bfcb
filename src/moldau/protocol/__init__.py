"""What travels: primitives, headers, messages generated from schemas/, api keys, error codes, stored records."""
