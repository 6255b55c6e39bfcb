"""Quota keys: of users and client ids, of addresses, and the replication throttles of a broker."""

from typing import Final

from moldau.config.definitions import DOUBLE, INT, LONG, QUOTA, ConfigKey, ConfigKeys, at_least

# fmt: off
# ruff: noqa: E501
USER_CLIENT_QUOTA_KEYS: Final = ConfigKeys((
    ConfigKey("producer_byte_rate",       LONG,   "9223372036854775807", None, "Bytes per second a producer may write to one broker before it is slowed down."),
    ConfigKey("consumer_byte_rate",       LONG,   "9223372036854775807", None, "Bytes per second a consumer may read from one broker before it is slowed down."),
    ConfigKey("request_percentage",       DOUBLE, "2.147483647E9",       None, "Share of a broker's request time a client may use, in percent of one thread."),
    ConfigKey("controller_mutation_rate", DOUBLE, "2.147483647E9",       None, "Partitions per second a client may have created or deleted."),
))

IP_QUOTA_KEYS: Final = ConfigKeys((
    ConfigKey("connection_creation_rate", INT, "2147483647", at_least(0), "Connections per second that one address may open."),
))

BROKER_QUOTA_KEYS: Final = ConfigKeys((
    ConfigKey("leader.replication.throttled.rate",              LONG, "9223372036854775807", at_least(0), "Bytes per second a broker sends at most for throttled replicas it leads.", dynamic=QUOTA),
    ConfigKey("follower.replication.throttled.rate",            LONG, "9223372036854775807", at_least(0), "Bytes per second a broker fetches at most for throttled replicas it follows.", dynamic=QUOTA),
    ConfigKey("replica.alter.log.dirs.io.max.bytes.per.second", LONG, "9223372036854775807", at_least(0), "Bytes per second a broker moves at most between its own log directories.", dynamic=QUOTA),
))
# fmt: on
