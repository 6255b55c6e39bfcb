"""The options of `kafka-acls`, and what they say: which resources, and which entries about each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT
from moldau.cli.kafka.java_order import combined_hash, hash_order, string_hash
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_invalid,
)
from moldau.security import rights

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding

ABOUT = "Add, remove and list ACLs."
ACTIONS = ("add", "remove", "list")
ANY_HOST = "*"
# The option that names resources of a type.
RESOURCE_OPTIONS = {
    "topic": rights.TOPIC,
    "group": rights.GROUP,
    "transactional-id": rights.TRANSACTIONAL_ID,
    "delegation-token": rights.DELEGATION_TOKEN,
    "user-principal": rights.USER,
}
PATTERNS = rights.PATTERN_NAMES[1:]
DEFAULT_PATTERN = rights.PATTERN_NAMES[rights.LITERAL]
PRODUCER_OPERATIONS = (rights.WRITE, rights.DESCRIBE, rights.CREATE)
TRANSACTION_OPERATIONS = (rights.WRITE, rights.DESCRIBE)
CONSUMER_OPERATIONS = (rights.READ, rights.DESCRIBE)
# People write DescribeConfigs where the protocol says DESCRIBE_CONFIGS.
OPERATION_NUMBERS = {name.replace("_", ""): number for number, name in enumerate(rights.OPERATION_NAMES)}
ANY_OPERATION = OPERATION_NUMBERS["ANY"]
UNKNOWN_OPERATION = OPERATION_NUMBERS["UNKNOWN"]

PARSER = OptionParser(
    [
        Option("bootstrap-server", "The brokers to connect to.", VALUE, described_as="server to connect to"),
        Option(
            "bootstrap-controller", "The controllers to connect to.", VALUE, described_as="controller to connect to"
        ),
        Option(
            "command-config", "A file with settings for the admin client.", OPTIONAL_VALUE, "String", "command-config"
        ),
        Option("add", "Add ACLs."),
        Option("remove", "Remove ACLs: all of a resource where no principal is named."),
        Option("list", "List ACLs, of all resources where none is named."),
        Option("topic", "A topic; '*' stands for all.", VALUE, described_as="topic"),
        Option("group", "A group; '*' stands for all.", VALUE, described_as="group"),
        Option("cluster", "The cluster."),
        Option("transactional-id", "A transactional id; '*' stands for all.", VALUE, described_as="transactional-id"),
        Option("delegation-token", "A delegation token; '*' stands for all.", VALUE, described_as="delegation-token"),
        Option("user-principal", "A principal as the owner of tokens.", VALUE, described_as="user-principal"),
        Option(
            "resource-pattern-type",
            "What the names of resources are: 'literal' names or 'prefixed' ones. With --list and --remove also 'any',"
            " patterns of exactly this name, and 'match', all patterns that hold for the name.",
            VALUE,
            "|".join(PATTERNS),
            default=DEFAULT_PATTERN,
        ),
        Option(
            "operation",
            "An operation that is allowed or denied, such as Read, Write, Describe, AlterConfigs or All.",
            VALUE,
            default="All",
        ),
        Option("allow-principal", "Who is allowed, as User:name.", VALUE, described_as="allow-principal"),
        Option("deny-principal", "Who is denied; this comes first.", VALUE, described_as="deny-principal"),
        Option("allow-host", "From where, with --allow-principal; else '*'.", VALUE, described_as="allow-host"),
        Option("deny-host", "From where not, with --deny-principal; else '*'.", VALUE, described_as="deny-host"),
        Option("producer", "What a producer needs: Write, Describe and Create on the topics."),
        Option("consumer", "What a consumer needs: Read and Describe on the topics, Read on the groups."),
        Option("idempotent", "With --producer: what an idempotent one needs as well."),
        Option("principal", "List only what is about this principal.", OPTIONAL_VALUE, "String", "principal"),
        Option("force", "Do not ask before ACLs are removed."),
    ]
)


class Pattern(NamedTuple):
    """A resource pattern, or a filter for some where its pattern type is ANY or MATCH."""

    resource_type: int
    name: str
    pattern_type: int

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={rights.RESOURCE_NAMES[self.resource_type]}, name={self.name}, "
            f"patternType={rights.PATTERN_NAMES[self.pattern_type]})"
        )


class Entry(NamedTuple):
    """Who may or may not do what, from where."""

    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={rights.OPERATION_NAMES[self.operation]}, "
            f"permissionType={rights.PERMISSION_NAMES[self.permission]})"
        )


Entries = dict[Pattern, list[Entry]]
CLUSTER = Pattern(rights.CLUSTER, rights.CLUSTER_NAME, rights.LITERAL)


def split(binding: AclBinding) -> tuple[Pattern, Entry]:
    """What the admin client has in one piece and this tool in two."""
    return (
        Pattern(binding.resource_type, binding.resource_name, binding.pattern_type),
        Entry(binding.principal, binding.host, binding.operation, binding.permission),
    )


def parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, failure.message or "", PARSER) from None
    check_help_or_version(options, ABOUT)
    _check(options)
    return options


def _check(options: Options) -> None:
    servers = sum(options.has(name) for name in ("bootstrap-server", "bootstrap-controller"))
    if servers != 1:
        first = "Only one" if servers else "One"
        raise _usage(f"{first} of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise _usage("Command must include exactly one action: --list, --add, --remove. ")
    whom = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    check_invalid(options, "list", "producer", "consumer", *whom)
    for role in ("producer", "consumer"):
        check_invalid(options, role, "operation", "deny-principal", "deny-host")
    if options.has("principal") and not options.has("list"):
        raise _usage("The --principal option is only available if --list is set")
    if options.has("producer") and not options.has("topic"):
        raise _usage("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        raise _usage("The --idempotent option is only available if --producer is set")
    if options.has("consumer") and not _is_consumer_complete(options):
        raise _usage(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
            " should be specified."
        )


def _is_consumer_complete(options: Options) -> bool:
    if not options.has("topic") or not options.has("group"):
        return False
    return options.has("producer") or not (options.has("cluster") or options.has("transactional-id"))


def _usage(sentence: str) -> Exit:
    return Exit(1, sentence, PARSER)


# Resources


def pattern_type_of(options: Options) -> int:
    text = options.text("resource-pattern-type") or ""
    if text.upper() in PATTERNS:
        return rights.PATTERN_NAMES.index(text.upper())
    reason = f"Value [{text}] is not one of [{'|'.join(PATTERNS)}]"
    if text.upper() == rights.PATTERN_NAMES[0]:
        reason = f"Unknown resource-pattern-type: {text}"
    cause = JavaFailure("joptsimple.ValueConversionException", reason)
    sentence = f"Cannot parse argument '{text}' of option resource-pattern-type"
    raise JavaFailure("joptsimple.OptionArgumentConversionException", sentence, cause)


def named_resources(options: Options) -> list[Pattern]:
    """The resources of the command line, in its order by type; none where it names none."""
    pattern_type = pattern_type_of(options)
    found = []
    for option, resource_type in RESOURCE_OPTIONS.items():
        found += [Pattern(resource_type, name.strip(), pattern_type) for name in options.values(option)]
        if option == "topic" and pattern_type == rights.LITERAL and options.has("cluster"):
            found.append(CLUSTER)
    return list(dict.fromkeys(found))


def _required_resources(options: Options) -> list[Pattern]:
    found = named_resources(options)
    if not found:
        raise _usage(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group>"
            " or --delegation-token <Delegation Token ID>"
        )
    return found


# Principals and entries


def parse_principal(text: str) -> str:
    """Refuses what is not of the form `type:name`, as Java's client does."""
    if ":" not in text:
        sentence = f"expected a string in format principalType:principalName but got {text}"
        raise JavaFailure(ILLEGAL_ARGUMENT, sentence)
    return text


def principals_of(options: Options, option: str) -> list[str]:
    """In the order of a HashSet, in which they are listed."""
    return hash_order((parse_principal(text.strip()) for text in options.values(option)), _principal_hash)


def _principal_hash(principal: str) -> int:
    kind, _, name = principal.partition(":")
    return combined_hash(string_hash(kind), string_hash(name))


def _hosts_of(options: Options, side: str) -> list[str]:
    if options.has(f"{side}-host"):
        return list(dict.fromkeys(host.strip() for host in options.values(f"{side}-host")))
    return [ANY_HOST] if options.has(f"{side}-principal") else []


def _entries_for(options: Options, operations: Iterable[int]) -> list[Entry]:
    found = [
        Entry(principal, host, operation, permission)
        for side, permission in (("allow", rights.ALLOW), ("deny", rights.DENY))
        for principal in principals_of(options, f"{side}-principal")
        for host in _hosts_of(options, side)
        for operation in operations
    ]
    if any(entry.operation == ANY_OPERATION for entry in found):
        raise JavaFailure(ILLEGAL_ARGUMENT, "operation must not be ANY")
    return list(dict.fromkeys(found))


def entries_of(options: Options) -> Entries:
    """The entries that the command line means, by resource; without a principal a resource has none."""
    resources = _required_resources(options)
    found: Entries = {}

    def add(is_meant: Callable[[Pattern], bool], operations: Iterable[int]) -> None:
        for resource in filter(is_meant, resources):
            known = found.setdefault(resource, [])
            known += [entry for entry in _entries_for(options, operations) if entry not in known]

    if options.has("producer"):
        add(lambda resource: resource.resource_type == rights.TOPIC, PRODUCER_OPERATIONS)
        add(lambda resource: resource.resource_type == rights.TRANSACTIONAL_ID, TRANSACTION_OPERATIONS)
        if options.has("idempotent"):
            found[CLUSTER] = _entries_for(options, [rights.IDEMPOTENT_WRITE])
    if options.has("consumer"):
        add(lambda resource: resource.resource_type == rights.TOPIC, CONSUMER_OPERATIONS)
        add(lambda resource: resource.resource_type == rights.GROUP, [rights.READ])
    if not options.has("producer") and not options.has("consumer"):
        names = options.values("operation") or ["All"]
        add(lambda resource: True, [OPERATION_NUMBERS.get(name.upper(), UNKNOWN_OPERATION) for name in names])
    _check_operations(found)
    return found


def _check_operations(entries: Entries) -> None:
    for resource, wanted in entries.items():
        supported = sorted([*rights.OPERATIONS_OF[resource.resource_type], rights.ALL])
        if any(entry.operation not in supported for entry in wanted):
            names = ", ".join(rights.OPERATION_NAMES[operation] for operation in supported)
            kind = rights.RESOURCE_NAMES[resource.resource_type]
            raise _usage(f"ResourceType {kind} only supports operations [{names}]")


def entries_to_add(options: Options) -> Entries:
    pattern_type = pattern_type_of(options)
    if pattern_type not in (rights.LITERAL, rights.PREFIXED):
        name = rights.PATTERN_NAMES[pattern_type]
        raise _usage(f"A '--resource-pattern-type' value of '{name}' is not valid when adding acls.")
    found = entries_of(options)
    if not all(found.values()):
        raise _usage("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return found
