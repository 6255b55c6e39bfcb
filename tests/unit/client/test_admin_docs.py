"""docs/admin.md lists the methods that the class has, and they cover the protocol."""

from __future__ import annotations

import re
from pathlib import Path

from moldau.client.admin import Admin
from moldau.protocol import api_keys

DOCUMENT = Path(__file__).parents[3] / "docs" / "admin.md"

# What clients and brokers say to each other while they work; nothing that an administrator asks for.
NOT_FOR_ADMINS = {
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "AllocateProducerIds",
    "AlterPartition",
    "AssignReplicasToDirs",
    "BeginQuorumEpoch",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ConsumerGroupHeartbeat",
    "ControllerRegistration",
    "DeleteShareGroupState",
    "EndQuorumEpoch",
    "Envelope",
    "Fetch",
    "FetchSnapshot",
    "FindCoordinator",
    "Heartbeat",
    "InitializeShareGroupState",
    "JoinGroup",
    "OffsetForLeaderEpoch",
    "Produce",
    "PushTelemetry",
    "ReadShareGroupState",
    "ReadShareGroupStateSummary",
    "SaslAuthenticate",
    "SaslHandshake",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "SyncGroup",
    "TxnOffsetCommit",
    "Vote",
    "WriteShareGroupState",
}


def table() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| [\w, ]+ \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {name: set(apis.split(", ")) for name, apis in rows}


def test_the_table_has_every_method_and_no_other() -> None:
    methods = {name for name in dir(Admin) if not name.startswith("_")} - {"close", "metrics"}
    assert set(table()) == methods


def test_every_admin_api_of_the_protocol_has_a_method() -> None:
    named = set().union(*table().values())
    assert named <= set(api_keys.BY_NAME)
    assert set(api_keys.BY_NAME) - NOT_FOR_ADMINS == named


def test_every_method_says_what_it_does() -> None:
    assert [name for name in table() if not getattr(Admin, name).__doc__] == []
