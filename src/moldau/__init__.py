"""Moldau: Apache Kafka's system in Python."""

__version__ = "0.2.0"
