"""DescribeUserScramCredentials and AlterUserScramCredentials: which users may log in by SCRAM (KIP-554).

Version 0 of both. Descriptions name mechanisms and iterations, never what is stored of a password.
"""

from __future__ import annotations

from collections import Counter

from moldau.api.authorize import check_cluster
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from moldau.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from moldau.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.security.rights import ALTER, DESCRIBE


def handle_alter_user_scram_credentials(call: Call, request: AlterUserScramCredentialsRequest) -> None:
    def failed(error: KafkaError) -> AlterUserScramCredentialsResponse:
        users = dict.fromkeys([d.name for d in request.deletions] + [u.name for u in request.upsertions])
        rows = [AlterUserScramCredentialsResult(user, error.code, error.message) for user in users]
        return AlterUserScramCredentialsResponse(results=rows)

    submit(call, lambda controller: controller.alter_user_scram_credentials(request, call.now_ms), failed, ALTER)


def handle_describe_user_scram_credentials(call: Call, request: DescribeUserScramCredentialsRequest) -> None:
    try:
        check_cluster(call, DESCRIBE)
    except KafkaError as error:
        rows = [DescribeUserScramCredentialsResult("", error.code, None) for _ in request.users or ()]
        call.respond(DescribeUserScramCredentialsResponse(0, error.code, None, rows))
        return
    call.respond(describe_user_scram_credentials(call.node.image, request))


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Of the users asked for, or of all of them when none is named."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (mechanism, user), credential in sorted(image.scram.items()):
        infos.setdefault(user, []).append(CredentialInfo(mechanism, credential.iterations))
    wanted = Counter(user.name for user in request.users or ()) or Counter(list(infos))
    response = DescribeUserScramCredentialsResponse(error_message=None)
    for user, count in wanted.items():
        row = DescribeUserScramCredentialsResult(user, error_message=None)
        if count > 1:
            row.error_code = errors.DUPLICATE_RESOURCE
            row.error_message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        elif user not in infos:
            row.error_code = errors.RESOURCE_NOT_FOUND
            row.error_message = f"Attempt to describe a user credential that does not exist: {user}"
        else:
            row.credential_infos = infos[user]
        response.results.append(row)
    return response
