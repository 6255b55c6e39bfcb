"""Which access control entries there are, by what they say: the same is stored once."""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord

AclKey = tuple[int, str, int, str, str, int, int]


def acl_key(acl: AccessControlEntryRecord) -> AclKey:
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


class KnownAcls:
    def __init__(self, image: MetadataImage) -> None:
        self._counts: dict[AclKey, int] = {}
        for acl in image.acls.values():
            self._count(acl, 1)

    def __contains__(self, key: AclKey) -> bool:
        return key in self._counts

    def apply(self, delta: MetadataDelta) -> None:
        for acl_id, acl in delta.changed_acls.items():
            before = delta.base.acls.get(acl_id)
            if before is not None:
                self._count(before, -1)
            if acl is not None:
                self._count(acl, 1)

    def _count(self, acl: AccessControlEntryRecord, change: int) -> None:
        key = acl_key(acl)
        count = self._counts.get(key, 0) + change
        assert count >= 0, f"more entries are gone than there were: {key}"
        if count:
            self._counts[key] = count
        else:
            del self._counts[key]
