"""The way to a cluster: sockets, requests and answers, logins, metadata, and trying again."""
