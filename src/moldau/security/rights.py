"""The words of access control: resource types, operations, patterns and permissions, and which operations imply which.

The numbers are those of the protocol and of the records in the metadata log. An authorized-operations field has a bit
for each operation that exists for the resource, at the place of its number.
"""

from __future__ import annotations

from typing import Final

# Resource types
ANY: Final = 1
TOPIC: Final = 2
GROUP: Final = 3
CLUSTER: Final = 4
TRANSACTIONAL_ID: Final = 5
DELEGATION_TOKEN: Final = 6
USER: Final = 7
CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"

# Patterns
LITERAL: Final = 3
PREFIXED: Final = 4

# Permissions
DENY: Final = 2
ALLOW: Final = 3

# Operations
ALL: Final = 2
READ: Final = 3
WRITE: Final = 4
CREATE: Final = 5
DELETE: Final = 6
ALTER: Final = 7
DESCRIBE: Final = 8
CLUSTER_ACTION: Final = 9
DESCRIBE_CONFIGS: Final = 10
ALTER_CONFIGS: Final = 11
IDEMPOTENT_WRITE: Final = 12
CREATE_TOKENS: Final = 13
DESCRIBE_TOKENS: Final = 14
TWO_PHASE_COMMIT: Final = 15

OPERATION_NAMES: Final = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
RESOURCE_NAMES: Final = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
# As the audit log writes them.
RESOURCE_WORDS: Final = ("Unknown", "Any", "Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
PATTERN_NAMES: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
PERMISSION_NAMES: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")

_IMPLYING: Final = {
    DESCRIBE: (READ, WRITE, DELETE, ALTER),
    DESCRIBE_CONFIGS: (ALTER_CONFIGS,),
}

OPERATIONS_OF: Final = {
    TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE),
    TRANSACTIONAL_ID: (WRITE, DESCRIBE, TWO_PHASE_COMMIT),
    DELEGATION_TOKEN: (DESCRIBE,),
    USER: (CREATE_TOKENS, DESCRIBE_TOKENS),
}
"""Those that mean something for a resource. Nothing keeps an ACL from naming others."""


def mask(*operations: int) -> int:
    bits = 0
    for operation in operations:
        bits |= 1 << operation
    return bits


ALL_TOPIC_OPERATIONS: Final = mask(*OPERATIONS_OF[TOPIC])
ALL_OPERATIONS: Final = {resource: mask(*operations) for resource, operations in OPERATIONS_OF.items()}
"""Without an authorizer everyone may do everything."""

DENYING: Final = tuple(mask(operation, ALL) for operation in range(len(OPERATION_NAMES)))
"""By operation: the operations of a DENY that forbid it, as bits."""
ALLOWING: Final = tuple(
    mask(operation, ALL, *_IMPLYING.get(operation, ())) for operation in range(len(OPERATION_NAMES))
)
"""By operation: the operations of an ALLOW that permit it. Who may read may also describe; a DENY implies nothing."""
