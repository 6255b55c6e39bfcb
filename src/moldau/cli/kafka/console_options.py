"""The options of `kafka-console-consumer`, checked and turned into settings."""

from __future__ import annotations

import random
import re
import sys

from moldau.cli.kafka.formatters import DEFAULT, Formatter, new_formatter
from moldau.cli.kafka.java_client import file_settings, read_pairs
from moldau.cli.kafka.options import (
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)
from moldau.protocol.integers import LONG_MAX

FORMATTER_HELP = (
    "How records are shown, as name=value: print.timestamp, print.key, print.offset, print.epoch, print.partition,"
    " print.headers, print.value (true or false), key.separator, line.separator, headers.separator, null.literal,"
    " key.deserializer, value.deserializer, headers.deserializer."
)

PARSER = OptionParser(
    [
        Option("topic", "The topic.", VALUE, described_as="topic"),
        Option("include", "A regular expression of topics.", VALUE, described_as="Java regex (String)"),
        Option(
            "partition", "The partition; from its end unless --offset says otherwise.", VALUE, "Integer", "partition"
        ),
        Option("offset", "earliest, latest or a number.", VALUE, described_as="consume offset", default="latest"),
        Option("consumer-property", "Deprecated: use --command-property.", VALUE, described_as="consumer_prop"),
        Option("command-property", "A setting of the consumer, as name=value.", VALUE, described_as="consumer_prop"),
        Option("consumer.config", "Deprecated: use --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings of the consumer.", VALUE, described_as="config file"),
        Option("formatter", "The class that shows records.", VALUE, described_as="class", default=DEFAULT),
        Option("property", "Deprecated: use --formatter-property.", VALUE, described_as="prop"),
        Option("formatter-property", FORMATTER_HELP, VALUE, described_as="prop"),
        Option("formatter-config", "A file with such properties.", VALUE, described_as="config file"),
        Option("from-beginning", "Begin with the first record where the group has no offset yet."),
        Option("max-messages", "End after so many records.", VALUE, "Integer", "num_messages"),
        Option("timeout-ms", "End when nothing came for so long.", VALUE, "Long", "timeout_ms"),
        Option("skip-message-on-error", "Go on behind a record that cannot be shown."),
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("key-deserializer", "The class that reads keys.", VALUE, described_as="deserializer for keys"),
        Option("value-deserializer", "The class that reads values.", VALUE, described_as="deserializer for values"),
        Option("enable-systest-events", "Tell of the end, for system tests."),
        Option("isolation-level", "read_committed or read_uncommitted.", VALUE, default="read_uncommitted"),
        Option("group", "The group of consumers to read in.", VALUE, described_as="consumer group id"),
    ]
)
EARLIEST, LATEST = -2, -1
GROUP_NUMBER_MAX = 100_000


class ConsumerOptions:
    """What is to be read, from where, and how it is shown."""

    def __init__(self, arguments: list[str]) -> None:
        options = parse(PARSER, arguments, "Print the records of topics.")
        self._options = options
        self.topic = options.text("topic")
        self.include = options.text("include")
        self.partition = options.integer("partition")
        self._check(options)
        tell_deprecated(options, "consumer-property", "command-property")
        tell_deprecated(options, "consumer.config", "command-config")
        from_file = file_settings(options, "command-config", "consumer.config")
        given = read_pairs(options.values("command-property") or options.values("consumer-property"))
        group = choose_group(options, from_file, given, "consumer.config")
        if group is not None and self.partition is not None:
            raise Exit(1, "Options group and partition cannot be specified together.", PARSER)
        self.has_group = group is not None
        self.config = self._settings({**from_file, **given}, group)
        self.offset = self._offset()
        self.timeout_ms = self._timeout_ms()
        self.formatter = read_formatter(options)

    def _check(self, options: Options) -> None:
        if options.has("topic") == options.has("include"):
            raise Exit(1, "Exactly one of the following arguments is required: [topic], [include]", PARSER)
        if self.partition is not None:
            if self.topic is None:
                raise Exit(1, "The topic is required when partition is specified.", PARSER)
            if options.has("from-beginning") and options.has("offset"):
                raise Exit(1, "Options from-beginning and offset cannot be specified together.", PARSER)
        elif options.has("offset"):
            raise Exit(1, "The partition is required when offset is specified.", PARSER)
        check_required(options, "bootstrap-server")
        for old, new in (("consumer-property", "command-property"), ("consumer.config", "command-config")):
            if options.has(old) and options.has(new):
                raise Exit(1, f"Options --{old} and --{new} cannot be specified together.", PARSER)

    def _settings(self, config: dict[str, str], group: str | None) -> dict[str, str]:
        beginning = self._options.has("from-beginning")
        reset = config.get("auto.offset.reset")
        if beginning and reset not in (None, "earliest"):
            raise Exit(
                1,
                f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}',"
                " please remove one option",
            )
        config.setdefault("auto.offset.reset", "earliest" if beginning else "latest")
        config["bootstrap.servers"] = self._options.text("bootstrap-server") or ""
        config.setdefault("client.id", "console-consumer")
        level = self._options.text("isolation-level") or ""
        if self._options.has("isolation-level") or "isolation.level" not in config:
            config["isolation.level"] = level
        if group is not None:
            config["group.id"] = group
        else:
            config["group.id"] = f"console-consumer-{random.randrange(GROUP_NUMBER_MAX)}"
            config.setdefault("enable.auto.commit", "false")
        return config

    def _offset(self) -> int:
        if not self._options.has("offset"):
            return EARLIEST if self._options.has("from-beginning") else LATEST
        text = self._options.text("offset") or ""
        named = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
        if named is not None:
            return named
        if not re.fullmatch(r"\+?\d+", text) or int(text) > LONG_MAX:
            raise Exit(
                1,
                f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a"
                " non-negative long.",
                PARSER,
            )
        return int(text)

    def _timeout_ms(self) -> int | None:
        found = self._options.long("timeout-ms")
        return found if found is not None and found >= 0 else None

    @property
    def max_messages(self) -> int:
        found = self._options.integer("max-messages")
        return -1 if found is None else found

    @property
    def skips_errors(self) -> bool:
        return self._options.has("skip-message-on-error")

    @property
    def tells_events(self) -> bool:
        return self._options.has("enable-systest-events")


def parse(parser: OptionParser, arguments: list[str], about: str) -> Options:
    try:
        options = parser.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), parser) from None
    check_help_or_version(options, about)
    sys.stdout.flush()
    return options


def tell_deprecated(options: Options, old: str, new: str) -> None:
    if options.has(old):
        print(f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead.")


def choose_group(options: Options, from_file: dict[str, str], given: dict[str, str], file_option: str) -> str | None:
    """The group, which may be named in three places; file_option: what the older option of a file is called."""
    groups = [] if (group := options.text("group")) is None else [group]
    groups += [config["group.id"] for config in (from_file, given) if "group.id" in config]
    groups = list(dict.fromkeys(groups))
    if len(groups) > 1:
        names = ", ".join(f"'{group}'" for group in groups)
        raise Exit(
            1,
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or"
            f" via '--{file_option}') do not match. Detected group ids: {names}",
            options.parser,
        )
    return groups[0] if groups else None


def read_formatter(options: Options) -> Formatter:
    """How records are shown; options that make no sense end the tool."""
    name = options.text("formatter") or ""
    try:
        if options.has("property") and options.has("formatter-property"):
            sentence = "Options --property and --formatter-property cannot be specified together."
            raise Exit(1, sentence, options.parser)
        tell_deprecated(options, "property", "formatter-property")
        properties = file_settings(options, "formatter-config")
        for setting, option in (
            ("key.deserializer", "key-deserializer"),
            ("value.deserializer", "value-deserializer"),
        ):
            properties |= {setting: options.text(option) or ""} if options.text(option) else {}
        properties |= read_pairs(options.values("formatter-property") or options.values("property"))
        return new_formatter(name, properties)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), options.parser) from None
