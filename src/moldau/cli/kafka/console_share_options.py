"""The options of `kafka-console-share-consumer`, checked and turned into settings."""

from __future__ import annotations

from moldau.cli.kafka.console_options import FORMATTER_HELP, choose_group, parse, read_formatter, tell_deprecated
from moldau.cli.kafka.formatters import DEFAULT
from moldau.cli.kafka.java_client import file_settings, read_pairs
from moldau.cli.kafka.options import VALUE, Exit, Option, OptionParser, check_required
from moldau.client.share.acknowledgements import AcknowledgeType

GROUP = CLIENT_ID = "console-share-consumer"

PARSER = OptionParser(
    [
        Option("topic", "REQUIRED: the topic.", VALUE, described_as="topic"),
        Option("consumer-property", "Deprecated: use --command-property.", VALUE, described_as="consumer_prop"),
        Option("command-property", "A setting of the consumer, as name=value.", VALUE, described_as="consumer_prop"),
        Option("consumer-config", "Deprecated: use --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings of the consumer.", VALUE, described_as="config file"),
        Option("formatter", "The class that shows records.", VALUE, described_as="class", default=DEFAULT),
        Option("property", "Deprecated: use --formatter-property.", VALUE, described_as="prop"),
        Option("formatter-property", FORMATTER_HELP, VALUE, described_as="prop"),
        Option("formatter-config", "A file with such properties.", VALUE, described_as="config file"),
        Option("max-messages", "End after so many records.", VALUE, "Integer", "num_messages"),
        Option("timeout-ms", "End when nothing came for so long.", VALUE, "Integer", "timeout_ms"),
        Option("reject-message-on-error", "Reject a record that cannot be shown, and go on behind it."),
        Option("reject", "Reject the records that are shown: the group is done with them."),
        Option("release", "Release the records that are shown: the group delivers them again."),
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("key-deserializer", "The class that reads keys.", VALUE, described_as="deserializer for keys"),
        Option("value-deserializer", "The class that reads values.", VALUE, described_as="deserializer for values"),
        Option("enable-systest-events", "Tell of the end, for system tests."),
        Option("group", f"The share group. Default: {GROUP}.", VALUE, described_as="share group id"),
    ]
)


class ShareOptions:
    """What is to be read, what the group is told about it, and how it is shown."""

    def __init__(self, arguments: list[str]) -> None:
        options = parse(PARSER, arguments, "Print the records that a share group hands out.")
        if not options.has("topic"):
            raise Exit(1, "--topic is a required argument", PARSER)
        check_required(options, "bootstrap-server")
        if options.has("reject") and options.has("release"):
            raise Exit(1, "At most one of --reject and --release may be specified.", PARSER)
        for old, new in (("consumer-property", "command-property"), ("consumer-config", "command-config")):
            if options.has(old) and options.has(new):
                raise Exit(1, f"Options --{old} and --{new} cannot be specified together.", PARSER)
        tell_deprecated(options, "consumer-property", "command-property")
        tell_deprecated(options, "consumer-config", "command-config")
        from_file = file_settings(options, "command-config", "consumer-config")
        given = read_pairs(options.values("command-property") or options.values("consumer-property"))
        self.topic = options.text("topic") or ""
        group = choose_group(options, from_file, given, "consumer-config")
        self.config = {
            "client.id": CLIENT_ID,
            **from_file,
            **given,
            "bootstrap.servers": options.text("bootstrap-server") or "",
            "group.id": GROUP if group is None else group,
            "share.acknowledgement.mode": "explicit",
        }
        self.formatter = read_formatter(options)
        self.timeout_ms = _not_negative(options.integer("timeout-ms"))
        self._options = options
        self.rejects_errors = options.has("reject-message-on-error")
        self.tells_events = options.has("enable-systest-events")
        self.acknowledge_type = (
            AcknowledgeType.REJECT
            if options.has("reject")
            else AcknowledgeType.RELEASE
            if options.has("release")
            else AcknowledgeType.ACCEPT
        )

    @property
    def max_messages(self) -> int:
        found = self._options.integer("max-messages")
        return -1 if found is None else found


def _not_negative(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None
