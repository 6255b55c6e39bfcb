"""Requests, responses and headers, one generated module each; import them through api_keys or by name."""
