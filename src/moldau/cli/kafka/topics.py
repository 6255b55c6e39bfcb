"""`kafka-topics`: creates, lists, describes, alters and deletes topics."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, Connect, ask, connect, get_all, java_text
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.options import (
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_invalid,
    check_required,
)
from moldau.protocol.topic_names import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC

if TYPE_CHECKING:
    from moldau.client.admin import Admin

LOGGER = "org.apache.kafka.tools.TopicCommand"
ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
INTERNAL = (GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC)
REPLICATION_FACTOR_MAX = 32767

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("list", "List all topics."),
        Option("create", "Create a topic."),
        Option("delete", "Delete topics."),
        Option("alter", "Give topics more partitions."),
        Option("describe", "Show the partitions of topics and where they are."),
        Option("topic", "The topic; a regular expression except with --create.", VALUE, described_as="topic"),
        Option("topic-id", "The id of the topic, for --describe.", VALUE, described_as="topic-id"),
        Option("config", "A config of the new topic; may be given many times.", VALUE, described_as="name=value"),
        Option("delete-config", "Not supported any more; see kafka-configs.", VALUE, described_as="name"),
        Option("partitions", "The number of partitions.", VALUE, "Integer", "# of partitions"),
        Option("replication-factor", "The number of replicas of each partition.", VALUE, "Integer", "replicas"),
        Option(
            "replica-assignment",
            "The brokers of each partition, in the order of partitions.",
            VALUE,
            described_as="broker:broker,broker:broker",
        ),
        Option("under-replicated-partitions", "Describe only partitions with too few replicas in sync."),
        Option("unavailable-partitions", "Describe only partitions without a leader."),
        Option("under-min-isr-partitions", "Describe only partitions below their min.insync.replicas."),
        Option("at-min-isr-partitions", "Describe only partitions at their min.insync.replicas."),
        Option("topics-with-overrides", "Describe only topics that have configs of their own."),
        Option("if-exists", "A topic that does not exist is no error."),
        Option("if-not-exists", "A topic that exists is no error."),
        Option("exclude-internal", "Leave out internal topics."),
        Option(
            "partition-size-limit-per-response",
            "The number of partitions that one response describes at most.",
            VALUE,
            "Integer",
            "maximum number of partitions per response",
            2000,
        ),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        _check(options)
        where = options.text("bootstrap-server")
        admin = ask("", lambda: connect(where, options.text("command-config")))
    except JavaFailure as failure:
        sys.stderr.write(f"{failure.message}\n{java_text(failure)}\n\n")
        return 1
    with admin:
        try:
            _run(admin, options)
        except JavaFailure as failure:
            sys.stdout.write(f"Error while executing topic command : {failure.message}\n")
            sys.stdout.flush()
            sys.stderr.write(log_line("ERROR", java_text(failure) + "\n", LOGGER))
            return 1
    return 0


def _check(options: Options) -> None:
    check_help_or_version(options, "Create, delete, describe or change topics.")
    if sum(options.has(action) for action in ACTIONS) != 1:
        names = "--list, --describe, --create, --alter or --delete"
        raise Exit(1, f"Command must include exactly one action: {names}", options.parser)
    if not options.has("bootstrap-server"):
        raise JavaFailure("java.lang.IllegalArgumentException", "--bootstrap-server must be specified")
    if options.has("describe") and options.has("if-exists") and not (options.has("topic") or options.has("topic-id")):
        raise Exit(1, "--topic or --topic-id is required to describe a topic", options.parser)
    if not options.has("list") and not options.has("describe"):
        check_required(options, "topic")
    if options.has("alter"):
        if options.has("config"):
            raise Exit(
                1,
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]" '
                "(To alter topic configurations, the kafka-configs tool can be used.)",
                options.parser,
            )
        check_required(options, "partitions")
    check_invalid(options, "config", "describe", "list", "delete")
    check_invalid(options, "partitions", "describe", "list", "delete")
    check_invalid(options, "replication-factor", "alter", "describe", "list", "delete")
    check_invalid(options, "replica-assignment", "describe", "list", "delete")
    if options.has("create"):
        check_invalid(options, "replica-assignment", "partitions", "replication-factor")
    for report in REPORTS:
        check_invalid(options, report, *(other for other in REPORTS if other != report), "topics-with-overrides")
    check_invalid(options, "topics-with-overrides", *REPORTS)
    check_invalid(options, "if-exists", "create", "list")
    check_invalid(options, "if-not-exists", "alter", "describe", "list", "delete")
    check_invalid(options, "exclude-internal", "create", "alter", "delete")


def _run(admin: Admin, options: Options) -> None:
    if options.has("create"):
        _create(admin, options)
    elif options.has("alter"):
        _alter(admin, options)
    elif options.has("list"):
        print("\n".join(_find_topics(admin, options)))
    elif options.has("describe"):
        from moldau.cli.kafka.topics_describe import describe

        describe(admin, options, [] if options.has("topic-id") else _find_topics(admin, options))
    else:
        topics = _existing_topics(admin, options)
        get_all("deleteTopics", lambda: admin.delete_topics(topics, retry_on_quota_violation=False))


def _create(admin: Admin, options: Options) -> None:
    from moldau.client.admin import NewTopic

    name = options.text("topic") or ""
    partitions, factor = options.integer("partitions"), options.integer("replication-factor")
    assignment = _read_assignment(options.text("replica-assignment"))
    configs = _read_configs(options)
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
            "collide. To avoid issues it is best to use either, but not both."
        )
    if factor is not None and not 1 <= factor <= REPLICATION_FACTOR_MAX:
        sentence = f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive"
        raise JavaFailure("java.lang.IllegalArgumentException", sentence)
    if partitions is not None and partitions < 1:
        raise JavaFailure("java.lang.IllegalArgumentException", "The partitions must be greater than 0")
    wanted = NewTopic(
        name, -1 if partitions is None else partitions, -1 if factor is None else factor, configs, assignment
    )
    try:
        get_all("createTopics", lambda: admin.create_topics([wanted], retry_on_quota_violation=False))
    except JavaFailure as failure:
        if failure.class_name != ERRORS_PACKAGE + "TopicExistsException" or not options.has("if-not-exists"):
            raise
    else:
        print(f"Created topic {name}.")


def _alter(admin: Admin, options: Options) -> None:
    count = options.integer("partitions") or 0
    assignment = _read_assignment(options.text("replica-assignment"))
    topics = _existing_topics(admin, options)
    placed = {}
    if assignment:
        found = get_all("describeTopics", lambda: admin.describe_topics(topics))
        placed = {name: assignment[len(topic.partitions) :] for name, topic in found.items()}
    counts = dict.fromkeys(topics, count)
    if topics and count < 1:
        # The client would not ask for that; the broker's response is known.
        sentence = f"The topic {topics[0]} currently has "
        found = get_all("describeTopics", lambda: admin.describe_topics(topics[:1]))
        sentence += f"{len(found[topics[0]].partitions)} partition(s); {count} would not be an increase."
        raise JavaFailure(ERRORS_PACKAGE + "InvalidPartitionsException", sentence)
    get_all("createPartitions", lambda: admin.create_partitions(counts, placed, retry_on_quota_violation=False))


def _find_topics(admin: Admin, options: Options) -> list[str]:
    """The topics that --topic and --exclude-internal leave, by name."""
    wanted = options.text("topic")
    excluded = options.has("exclude-internal")
    names = [topic.name for topic in ask("listTopics", admin.list_topics) if not (excluded and topic.is_internal)]
    if wanted is not None:
        pattern = topic_pattern(wanted)
        names = [name for name in names if pattern.fullmatch(name)]
    if options.has("describe"):
        _require(names, wanted, options)
    return names


def _existing_topics(admin: Admin, options: Options) -> list[str]:
    names = _find_topics(admin, options)
    _require(names, options.text("topic"), options)
    return names


def _require(names: list[str], wanted: str | None, options: Options) -> None:
    if wanted is not None and not names and not options.has("if-exists"):
        raise JavaFailure("java.lang.IllegalArgumentException", f"Topic '{wanted}' does not exist as expected")


def topic_pattern(text: str) -> re.Pattern[str]:
    """A topic filter: a regular expression in which commas separate alternatives."""
    cleaned = text.strip().replace(",", "|").replace(" ", "")
    cleaned = re.sub(r"^[\"']+|[\"']+$", "", cleaned)
    try:
        return re.compile(cleaned)
    except re.error:
        raise JavaFailure("java.lang.RuntimeException", f"{text} is an invalid regex.") from None


def _read_assignment(text: str | None) -> list[list[int]]:
    """The replicas of each partition."""
    if text is None:
        return []
    found: list[list[int]] = []
    for index, part in enumerate(text.rstrip(",").split(",")):
        brokers = [_read_broker(broker) for broker in part.split(":")]
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            raise JavaFailure(
                "org.apache.kafka.tools.AdminCommandFailedException",
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}",
            )
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise JavaFailure(
                "org.apache.kafka.tools.AdminOperationException",
                f"Partition {index} has different replication factor: {brokers}",
            )
    return found


def _read_broker(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{text.strip()}"')
    return int(text)


def _read_configs(options: Options) -> dict[str, str | None]:
    """The configs of a new topic, checked before anything is sent, as the real tool does."""
    pairs = [re.split(r"\s*=\s*", text) for text in options.values("config")]
    # Java's split drops empty pieces at the end: `name=` has one piece.
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        sentence = 'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
        raise JavaFailure("java.lang.IllegalArgumentException", sentence)
    configs: dict[str, str | None] = {name.strip(): value.strip() for name, value in pairs}
    if configs:
        from moldau.config.dynamic import validate_topic_configs
        from moldau.protocol.errors import KafkaError

        try:
            validate_topic_configs(configs, remote_storage=True)
        except KafkaError as error:
            values = error.message.startswith("Invalid value ")
            kinds = (ERRORS_PACKAGE + "InvalidConfigurationException", "org.apache.kafka.common.config.ConfigException")
            raise JavaFailure(kinds[values], error.message) from None
    if options.has("delete-config"):
        sys.stdout.flush()
        sys.stderr.write(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases.\n"
        )
    return configs
