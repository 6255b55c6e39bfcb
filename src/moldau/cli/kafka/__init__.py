"""Kafka's command line tools under their own names: same options, same output, same exit codes."""
