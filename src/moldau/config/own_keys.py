"""Broker keys that Apache Kafka does not have; their names begin with `moldau.`, and DescribeConfigs lists those set."""

from typing import Final

from moldau.config.definitions import CLUSTER_WIDE, LONG, ConfigKey, ConfigKeys, at_least

FREE_BYTES_MIN_KEY: Final = "moldau.log.dir.free.bytes.min"
SCRUB_RATE_KEY: Final = "moldau.log.scrub.bytes.per.second"

# fmt: off
# ruff: noqa: E501
OWN_KEYS: Final = ConfigKeys((
    ConfigKey(FREE_BYTES_MIN_KEY, LONG, "-1",      at_least(-1), "Free space of a log directory's volume below which producers are refused; -1 is 256 MiB or a twentieth of the volume, whichever is less, 0 never refuses.", dynamic=CLUSTER_WIDE),
    ConfigKey(SCRUB_RATE_KEY,     LONG, "4194304", at_least(0),  "Bytes per second of old segments that are read to verify their checksums; 0 reads none.", dynamic=CLUSTER_WIDE),
))
# fmt: on
