"""Stored security settings: SCRAM credentials and access control entries."""

from __future__ import annotations

from moldau.controller.known_acls import AclKey, acl_key
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import supports_scram
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import delete_acls_response as deleted
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from moldau.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.stored import metadata_records as r
from moldau.protocol.uuids import random_uuid
from moldau.security.scram import HASHES, TYPES, keys_of

SCRAM_HASHES = {number: HASHES[name] for name, number in TYPES.items()}
SCRAM_NAMES = {number: name for name, number in TYPES.items()}
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384

ANY = 1
MATCH_PATTERN = 2
LITERAL_PATTERN = 3
PREFIXED_PATTERN = 4

CLUSTER_RESOURCE = 4
CLUSTER_NAME = "kafka-cluster"
RESOURCE_TYPE_MAX = 7
OPERATION_MAX = 15
PERMISSION_MAX = 3
ACLS_PER_REQUEST_MAX = 10_000


def scram_record(user: str, mechanism: int, salt: bytes, salted: bytes, iterations: int) -> r.UserScramCredentialRecord:
    """What is stored of a salted password (RFC 5802): never the password, nor what it could be derived from."""
    keys = keys_of(SCRAM_NAMES[mechanism], salted, salt, iterations)
    return r.UserScramCredentialRecord(user, mechanism, salt, keys.stored_key, keys.server_key, iterations)


class Security:
    def __init__(self, state: ControllerState) -> None:
        self.state = state

    # SCRAM

    def alter_scram(self, request: AlterUserScramCredentialsRequest) -> Result:
        users: dict[str, KafkaError | None] = {}
        records: dict[str, VersionedRecord] = {}
        for name in [*(d.name for d in request.deletions), *(u.name for u in request.upsertions)]:
            if name in users:
                message = "A user credential cannot be altered twice in the same request"
                users[name] = KafkaError(errors.DUPLICATE_RESOURCE, message)
            elif not supports_scram(self.state.image.metadata_version):
                message = "The current metadata.version does not support SCRAM"
                users[name] = KafkaError(errors.UNSUPPORTED_VERSION, message)
            else:
                users[name] = None
        for deletion in request.deletions:
            if users[deletion.name] is None:
                users[deletion.name] = self._check_deletion(deletion.name, deletion.mechanism)
                removal = r.RemoveUserScramCredentialRecord(deletion.name, deletion.mechanism)
                records[deletion.name] = (removal, 0)
        for upsertion in request.upsertions:
            if users[upsertion.name] is None:
                users[upsertion.name] = _check_upsertion(upsertion)
                if users[upsertion.name] is None:
                    u = upsertion
                    record = scram_record(u.name, u.mechanism, u.salt, u.salted_password, u.iterations)
                    records[u.name] = (record, 0)
        rows = [
            AlterUserScramCredentialsResult(user, error.code if error else 0, error.message if error else None)
            for user, error in users.items()
        ]
        kept = [record for user, record in records.items() if users[user] is None]
        return Result(kept, AlterUserScramCredentialsResponse(results=rows))

    def _check_deletion(self, user: str, mechanism: int) -> KafkaError | None:
        if not user:
            return KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if mechanism not in SCRAM_HASHES:
            return KafkaError(errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if (mechanism, user) not in self.state.image.scram:
            return KafkaError(errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return None

    # Access control entries

    def create_acls(self, request: CreateAclsRequest) -> Result:
        records: list[VersionedRecord] = []
        response = CreateAclsResponse()
        new: set[AclKey] = set()
        for creation in request.creations:
            row = AclCreationResult(0, "")
            problem = _acl_problem(creation)
            if problem is not None:
                row.error_code, row.error_message = errors.INVALID_REQUEST, problem
            else:
                record = r.AccessControlEntryRecord(
                    random_uuid(self.state.rng.randbytes),
                    creation.resource_type,
                    creation.resource_name,
                    creation.resource_pattern_type,
                    creation.principal,
                    creation.host,
                    creation.operation,
                    creation.permission_type,
                )
                key = acl_key(record)
                if key not in self.state.acls and key not in new:
                    new.add(key)
                    records.append((record, 0))
            response.results.append(row)
        _check_count(len(records))
        return Result(records, response)

    def delete_acls(self, request: DeleteAclsRequest) -> Result:
        """Nothing goes when more than a batch holds would go."""
        gone: dict[bytes, VersionedRecord] = {}
        response = deleted.DeleteAclsResponse()
        for wanted in request.filters:
            row = deleted.DeleteAclsFilterResult(0, None)
            response.filter_results.append(row)
            try:
                check_filter(wanted)
            except KafkaError as error:
                row.error_code, row.error_message = error.code, error.message
                continue
            for acl_id, acl in self.state.image.acls.items():
                if matches(wanted, acl):
                    gone[acl_id] = (r.RemoveAccessControlEntryRecord(acl_id), 0)
                    row.matching_acls.append(_matching(acl))
        _check_count(len(gone))
        return Result(list(gone.values()), response)


def _check_count(count: int) -> None:
    if count > ACLS_PER_REQUEST_MAX:
        message = f"{count} ACLs would change in one request, more than the {ACLS_PER_REQUEST_MAX} that may."
        raise KafkaError(errors.INVALID_REQUEST, message)


def _matching(acl: r.AccessControlEntryRecord) -> deleted.DeleteAclsMatchingAcl:
    return deleted.DeleteAclsMatchingAcl(
        0,
        None,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _check_upsertion(upsertion: ScramCredentialUpsertion) -> KafkaError | None:
    if not upsertion.name:
        return KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if upsertion.mechanism not in SCRAM_HASHES:
        return KafkaError(errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if upsertion.iterations < ITERATIONS_MIN:
        return KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > ITERATIONS_MAX:
        return KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not upsertion.salted_password:
        return KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Empty salted password")
    return None


def _acl_problem(creation: AclCreation) -> str | None:
    if creation.resource_type == CLUSTER_RESOURCE and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    if not ANY < creation.resource_type <= RESOURCE_TYPE_MAX:
        return f"Invalid resourceType {_unfit(creation.resource_type)}"
    if creation.resource_pattern_type not in (LITERAL_PATTERN, PREFIXED_PATTERN):
        return f"Invalid patternType {_unfit(creation.resource_pattern_type)}"
    if not ANY < creation.operation <= OPERATION_MAX:
        return f"Invalid operation {_unfit(creation.operation)}"
    if not ANY < creation.permission_type <= PERMISSION_MAX:
        return f"Invalid permissionType {_unfit(creation.permission_type)}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    return None


def _unfit(value: int) -> str:
    """What can be asked for but not be stored."""
    return {ANY: "ANY", MATCH_PATTERN: "MATCH"}.get(value, "UNKNOWN")


def check_filter(wanted: DeleteAclsFilter) -> None:
    if not ANY <= wanted.resource_type_filter <= RESOURCE_TYPE_MAX:
        raise KafkaError(errors.INVALID_REQUEST, "Unknown patternFilter.")
    if not ANY <= wanted.pattern_type_filter <= PREFIXED_PATTERN:
        raise KafkaError(errors.INVALID_REQUEST, "Unknown patternFilter.")
    if not ANY <= wanted.operation <= OPERATION_MAX or not ANY <= wanted.permission_type <= PERMISSION_MAX:
        raise KafkaError(errors.INVALID_REQUEST, "Unknown entryFilter.")


def matches(wanted: DeleteAclsFilter, acl: r.AccessControlEntryRecord) -> bool:
    """Whether an entry is what the filter describes; null and ANY match everything."""
    if wanted.resource_type_filter not in (ANY, acl.resource_type):
        return False
    if not _pattern_matches(wanted, acl):
        return False
    if wanted.principal_filter is not None and wanted.principal_filter != acl.principal:
        return False
    if wanted.host_filter is not None and wanted.host_filter != acl.host:
        return False
    return wanted.operation in (ANY, acl.operation) and wanted.permission_type in (ANY, acl.permission_type)


def _pattern_matches(wanted: DeleteAclsFilter, acl: r.AccessControlEntryRecord) -> bool:
    name, kind = wanted.resource_name_filter, wanted.pattern_type_filter
    if kind not in (ANY, MATCH_PATTERN, acl.pattern_type):
        return False
    if name is None:
        return True
    if kind == MATCH_PATTERN:
        if acl.pattern_type == LITERAL_PATTERN:
            return acl.resource_name in (name, "*")
        return name.startswith(acl.resource_name)
    return name == acl.resource_name
