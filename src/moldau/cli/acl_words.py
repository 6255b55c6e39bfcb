"""The words of `moldau acl`: principals, operations, resources and addresses as people write and read them.

A name stands for itself, and a prefix is one only where --prefix says so: no star is ever taken for a pattern but `*`
alone, which is Kafka's own name for all resources of a type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from moldau.cli.output import Styled
from moldau.security import rights

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding

ANY_HOST = "*"
TYPES = {name.lower().replace("_", "-"): number for number, name in enumerate(rights.RESOURCE_NAMES) if number > 1}
OPERATIONS = {
    name.lower().replace("_", "-"): number for number, name in enumerate(rights.OPERATION_NAMES) if number > 1
}
TYPE_CHOICE = click.Choice(list(TYPES), case_sensitive=False)


class Resource(NamedTuple):
    """What an entry is about, or which entries are meant."""

    type: int
    name: str
    is_prefix: bool = False


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics or groups, as the TYPE before it says."""
    from moldau.cli.completion import complete_groups, complete_topics

    kind = ctx.params.get("resource_type")
    complete = {"topic": complete_topics, "group": complete_groups}.get(kind or "")
    return [] if complete is None else complete(ctx, param, incomplete)


def parse_principal(text: str) -> str:
    kind, colon, name = text.strip().partition(":")
    if not colon or not kind or not name:
        hint = f" Did you mean User:{kind}?" if kind and not colon else ""
        raise click.UsageError(f"A principal is a type and a name, as in User:anna, not {text!r}.{hint}")
    return f"{kind}:{name}"


def parse_operation(text: str) -> int:
    """Written as people like: alter-configs, ALTER_CONFIGS, AlterConfigs."""
    plain = text.strip().lower().replace("-", "").replace("_", "")
    found = {name.replace("-", ""): number for name, number in OPERATIONS.items()}.get(plain)
    if found is None:
        raise click.UsageError(f"There is no operation {text!r}. There are: {', '.join(OPERATIONS)}.")
    return found


def parse_operations(text: str, resource_type: int) -> list[int]:
    """Several, with commas; those that mean nothing for such a resource are refused."""
    found = [parse_operation(word) for word in text.split(",")]
    supported = [*rights.OPERATIONS_OF[resource_type], rights.ALL]
    for operation in found:
        if operation not in supported:
            names = ", ".join(operation_word(each) for each in supported)
            kind = type_word(resource_type)
            raise click.UsageError(f"Nobody can {operation_word(operation)} a {kind}. For a {kind} there are: {names}.")
    return list(dict.fromkeys(found))


def parse_resource(type_name: str, name: str | None, is_prefix: bool = False, is_literal: bool = False) -> Resource:
    """The resource that the arguments TYPE and NAME mean."""
    resource_type = TYPES[type_name.lower()]
    if resource_type == rights.CLUSTER:
        if name not in (None, rights.CLUSTER_NAME) or is_prefix:
            raise click.UsageError("There is one cluster only: it has no NAME and no --prefix.")
        return Resource(resource_type, rights.CLUSTER_NAME)
    if not name:
        raise click.UsageError(f"Say which {type_name}: its NAME, or '*' for all of them.")
    if is_prefix and is_literal:
        raise click.UsageError("--prefix and --literal are opposites: choose one.")
    if name.endswith("*") and (is_prefix or name != rights.WILDCARD) and not is_literal:
        raise click.UsageError(_star_sentence(name, is_prefix))
    return Resource(resource_type, name, is_prefix)


def _star_sentence(name: str, is_prefix: bool) -> str:
    plain = name.rstrip("*")
    if is_prefix and not plain:
        return "A prefix is the beginning of names. All resources are meant by '*' without --prefix."
    if is_prefix:
        return f"A prefix ends where it ends, without a star: --prefix {plain}"
    return (
        f"{name!r} would be exactly this name, star and all. All names that begin so are meant by --prefix {plain},"
        " this one name by --literal."
    )


def parse_host(text: str) -> str:
    """An address as brokers see it: IPv6 in all its eight groups."""
    from ipaddress import ip_address

    from moldau.node.authorization import host_text

    if text == ANY_HOST:
        return text
    try:
        ip_address(text)
    except ValueError:
        raise click.UsageError(
            f"Brokers compare addresses, not names: say an address such as 10.0.0.7, or '*' for all, not {text!r}."
        ) from None
    return host_text(f"[{text}]:0" if ":" in text else f"{text}:0")


# As people read them


def operation_word(operation: int) -> str:
    return rights.OPERATION_NAMES[operation].lower().replace("_", "-")


def type_word(resource_type: int) -> str:
    return rights.RESOURCE_NAMES[resource_type].lower().replace("_", " ")


def resource_text(resource: Resource) -> str:
    kind = type_word(resource.type)
    if resource.type == rights.CLUSTER:
        return "the cluster"
    if resource.is_prefix:
        return f"{kind}s beginning with {resource.name}"
    return f"all {kind}s" if resource.name == rights.WILDCARD else f"{kind} {resource.name}"


def host_words(host: str) -> str:
    return "any address" if host == ANY_HOST else host


def resource_of(binding: AclBinding) -> Resource:
    return Resource(binding.resource_type, binding.resource_name, binding.pattern_type == rights.PREFIXED)


def binding_text(binding: AclBinding) -> str:
    """An entry as a sentence without its end."""
    verb = "may not" if binding.permission == rights.DENY else "may"
    what = "do everything with" if binding.operation == rights.ALL else operation_word(binding.operation)
    return f"{binding.principal} {verb} {what} {resource_text(resource_of(binding))} from {host_words(binding.host)}"


def binding_json(binding: AclBinding) -> dict[str, object]:
    return {
        "principal": binding.principal,
        "permission": binding.permission.name,
        "operation": binding.operation.name,
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern_type": binding.pattern_type.name,
        "host": binding.host,
    }


COLUMNS = ("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "FROM")


def binding_cells(binding: AclBinding) -> list[object]:
    is_deny = binding.permission == rights.DENY
    return [
        binding.principal,
        Styled(binding.permission.name.lower(), fg="red" if is_deny else "green"),
        operation_word(binding.operation),
        resource_text(resource_of(binding)),
        host_words(binding.host),
    ]
