"""The ACLs of an image: as a dictionary, and an image with one more shares nearly all with the one before."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from moldau.metadata.acl_map import CHUNK_MAX, AclMap
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord


def entry(number: int, principal: str = "User:anna") -> AccessControlEntryRecord:
    return AccessControlEntryRecord(number.to_bytes(16, "big"), 2, f"t{number}", 3, principal, "*", 3, 3)


def filled(count: int) -> AclMap:
    return AclMap().with_changes({(record := entry(number)).id: record for number in range(count)})


@pytest.mark.parametrize("seed", range(5))
def test_it_is_as_a_dictionary_in_the_order_of_coming(seed: int) -> None:
    rng = random.Random(seed)
    acls, expected = AclMap(), dict[bytes, AccessControlEntryRecord]()
    numbers = 0
    for _ in range(150):
        changes: dict[bytes, AccessControlEntryRecord | None] = {}
        for acl_id in rng.sample(list(expected), rng.choice([0, 0, 1, len(expected) // 3])):
            changes[acl_id] = None if rng.random() < 0.7 else entry(int.from_bytes(acl_id, "big"), "User:bob")
        for _ in range(rng.choice([0, 1, 1, 40, CHUNK_MAX])):
            numbers += 1
            changes[numbers.to_bytes(16, "big")] = entry(numbers) if rng.random() < 0.9 else None
        before, kept = acls, dict(acls.items())
        acls = acls.with_changes(changes)
        assert dict(before.items()) == kept, "an image never changes"
        for acl_id, record in changes.items():
            if record is None:
                expected.pop(acl_id, None)
            else:
                expected[acl_id] = record
        assert list(acls.items()) == list(expected.items()) and list(acls.values()) == list(expected.values())
        assert len(acls) == len(expected)
        assert all(acls.get(acl_id) is expected.get(acl_id) for acl_id in changes)
        sizes = [len(chunk) for chunk in acls._chunks]
        assert all(one + other > CHUNK_MAX // 2 for one, other in pairwise(sizes))
        assert max(sizes, default=0) <= CHUNK_MAX


@pytest.mark.parametrize("is_new", [True, False])
def test_one_change_among_many_copies_one_chunk(is_new: bool) -> None:
    before = filled(20_000)
    acl_id = (20_000 if is_new else 7777).to_bytes(16, "big")
    after = before.with_changes({acl_id: entry(20_000) if is_new else None})
    shared = {id(chunk) for chunk in before._chunks} & {id(chunk) for chunk in after._chunks}
    assert len(before._chunks) - len(shared) == 1
    assert len(after) == 20_000 + (1 if is_new else -1)


def test_without_changes_it_is_the_same() -> None:
    acls = filled(3)
    assert acls.with_changes({}) is acls
