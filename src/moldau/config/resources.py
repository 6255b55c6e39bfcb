"""What configs belong to: the resource types, the sources of a value, and the names a resource may have."""

import re
from typing import Final

from moldau.protocol.errors import INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, KafkaError

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

RESOURCE_TYPES: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)

# Where a described value comes from.
UNKNOWN_SOURCE: Final = 0
DYNAMIC_TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
DYNAMIC_BROKER_LOGGER_CONFIG: Final = 6
DYNAMIC_CLIENT_METRICS_CONFIG: Final = 7
DYNAMIC_GROUP_CONFIG: Final = 8

TOPIC_NAME_LENGTH_MAX: Final = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION for a name no topic can have."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    elif not _TOPIC_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason is not None:
        raise KafkaError(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_altered_resource(resource_type: int, name: str) -> None:
    """Raises the controller's objection to altering the configs of a resource that cannot exist."""
    if resource_type == TOPIC:
        if not name:
            raise KafkaError(INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
    elif resource_type == BROKER:
        _check_broker_name(name)
    elif resource_type == GROUP:
        if not name:
            raise KafkaError(INVALID_REQUEST, "Default group resources are not allowed.")
    elif resource_type == CLIENT_METRICS:
        if not name:
            raise KafkaError(INVALID_REQUEST, "Subscription name can't be empty")
    else:
        raise KafkaError(INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _check_broker_name(name: str) -> None:
    """A broker's number, or nothing for the default of all brokers."""
    if not name:
        return
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", name):
        raise KafkaError(INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if int(name) < 0:
        raise KafkaError(INVALID_REQUEST, "Invalid negative broker ID.")
