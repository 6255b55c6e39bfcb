"""The web console: pages about a cluster, of Moldau or of Apache Kafka, in a process of its own.

It knows the cluster through the client alone. `serve.py` starts it, `app.py` has the routes, `access.py` says who may
do what; each subject has a module for what is read and, where something can be changed, one for that. The pages are
plain ES modules in `static`, which ask the JSON API below `/api` (docs/adr/0019-the-console.md).
"""
