"""The way to a cluster: sockets, requests and responses, logins, metadata, and trying again."""
