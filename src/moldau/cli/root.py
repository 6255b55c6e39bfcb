"""The top of the command line: its commands, where they live, and `--version`."""

from __future__ import annotations

import click

from moldau.cli.lazy import LazyGroup, RootGroup

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from moldau.build_info import describe

        click.echo(describe())
        ctx.exit()


root = RootGroup(
    "moldau",
    help="Apache Kafka's system in Python: a broker that starts in a blink, and the tools to use one.",
    epilog="`moldau COMMAND --help` says more. Brokers are found by --bootstrap-server, else by the environment"
    " variable MOLDAU_BOOTSTRAP_SERVER, else at localhost:9092.",
    context_settings=SETTINGS,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version, whether it is compiled, and exit.",
        )
    ],
    commands_at={
        "server": ("moldau.cli.server_command:server", "Run a node."),
        "storage": ("moldau.cli.root:storage", "Prepare the directories of a node."),
        "topic": ("moldau.cli.root:topic", "Create, list, describe and delete topics."),
        "produce": ("moldau.cli.produce:produce", "Send lines from standard input to a topic."),
        "consume": ("moldau.cli.consume:consume", "Print the records of a topic."),
        "log": ("moldau.cli.root:log", "Look into the files of a data directory."),
        "install-kafka-names": ("moldau.cli.kafka.install:install", "Put Kafka's tool names into a folder."),
    },
)

storage = LazyGroup(
    "storage",
    help="Prepare the directories of a node, as kafka-storage does.",
    context_settings=SETTINGS,
    commands_at={
        "random-uuid": ("moldau.cli.storage:random_uuid", "Print a random id for a cluster."),
        "format": ("moldau.cli.storage:format_storage", "Format the log directories of a node."),
        "info": ("moldau.cli.storage:info", "Show what the log directories of a node hold."),
        "version-mapping": ("moldau.cli.storage:version_mapping", "Show the feature levels of a release."),
        "feature-dependencies": ("moldau.cli.storage:feature_dependencies", "Show what a feature level needs."),
    },
)

topic = LazyGroup(
    "topic",
    help="Create, list, describe and delete topics.",
    context_settings=SETTINGS,
    commands_at={
        "create": ("moldau.cli.topic:create", "Create topics."),
        "list": ("moldau.cli.topic:list_topics", "List the topics."),
        "describe": ("moldau.cli.topic:describe", "Show partitions, offsets and configs of topics."),
        "delete": ("moldau.cli.topic:delete", "Delete topics and all their records."),
    },
)

log = LazyGroup(
    "log",
    help="Look into the files of a data directory, without a server and without changing anything.",
    context_settings=SETTINGS,
    commands_at={
        "dump": ("moldau.cli.log:dump", "Print logs, indexes and snapshots."),
        "verify": ("moldau.cli.log:verify", "Check every file of a data directory."),
    },
)
