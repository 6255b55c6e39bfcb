"""Names of the topics that belong to the system itself."""

from typing import Final

METADATA_TOPIC: Final = "__cluster_metadata"
GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_TOPIC: Final = "__share_group_state"

METADATA_DIRECTORY: Final = "__cluster_metadata-0"
"""Its only partition, as the name of a partition's directory."""
