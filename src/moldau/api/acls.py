"""DescribeAcls, CreateAcls, DeleteAcls: who may do what, as stored; there must be an authorizer to ask for it.

Versions 1-3 of all three (patterns, KIP-290). Without `authorizer.class.name` their response is SECURITY_DISABLED.
"""

from __future__ import annotations

from moldau.api.authorize import check_cluster
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.controller.security import check_filter, matches
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import delete_acls_response as deleted
from moldau.protocol.messages.create_acls_request import CreateAclsRequest
from moldau.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from moldau.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls_request import DescribeAclsRequest
from moldau.protocol.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from moldau.security.rights import ALTER, DESCRIBE


def _check_authorizer(call: Call) -> None:
    if call.node.rights is None:
        raise KafkaError(errors.SECURITY_DISABLED, "No Authorizer is configured.")


def handle_create_acls(call: Call, request: CreateAclsRequest) -> None:
    def failed(error: KafkaError) -> CreateAclsResponse:
        return CreateAclsResponse(results=[AclCreationResult(error.code, error.message) for _ in request.creations])

    try:
        _check_authorizer(call)
    except KafkaError as error:
        call.respond(failed(error))
        return
    submit(call, lambda controller: controller.create_acls(request, call.now_ms), failed, ALTER)


def handle_delete_acls(call: Call, request: DeleteAclsRequest) -> None:
    def failed(error: KafkaError) -> deleted.DeleteAclsResponse:
        rows = [deleted.DeleteAclsFilterResult(error.code, error.message) for _ in request.filters]
        return deleted.DeleteAclsResponse(filter_results=rows)

    try:
        _check_authorizer(call)
    except KafkaError as error:
        call.respond(failed(error))
        return
    submit(call, lambda controller: controller.delete_acls(request, call.now_ms), failed, ALTER)


def handle_describe_acls(call: Call, request: DescribeAclsRequest) -> None:
    try:
        _check_authorizer(call)
        check_cluster(call, DESCRIBE)
        response = describe_acls(call.node.image, request)
    except KafkaError as error:
        response = DescribeAclsResponse(0, error.code, error.message)
    call.respond(response)


def describe_acls(image: MetadataImage, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """The entries that fit the filter, together by what they are about."""
    wanted = DeleteAclsFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    check_filter(wanted)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in image.acls.values():
        if not matches(wanted, acl):
            continue
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        resource = resources.setdefault(key, DescribeAclsResource(*key))
        resource.acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission_type))
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
