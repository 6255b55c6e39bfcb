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
    epilog="`moldau COMMAND --help` says more, `moldau help` has pages on what concerns several of them. Brokers are"
    " found by --bootstrap-server, else by the environment variable MOLDAU_BOOTSTRAP_SERVER, else by the profile in use"
    " (`moldau profile`), else at localhost:9092."
    " Kafka's own tools are here too, under their names: `moldau kafka-topics --list`.",
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
        "up": ("moldau.cli.up:up", "Run a cluster of several nodes on this machine."),
        "storage": ("moldau.cli.root:storage", "Prepare the directories of a node."),
        "topic": ("moldau.cli.root:topic", "Create, list, describe, change and delete topics."),
        "produce": ("moldau.cli.produce:produce", "Send lines of standard input or of files to a topic."),
        "consume": ("moldau.cli.consume:consume", "Print the records of topics."),
        "group": ("moldau.cli.root:group", "Show groups of consumers and their lag, reset their offsets."),
        "share": ("moldau.cli.root:share", "Show share groups, their lag and locks, reset their offsets."),
        "quota": ("moldau.cli.root:quota", "Show and set what clients may use, and who is throttled."),
        "acl": ("moldau.cli.root:acl", "Show, test and change who may do what."),
        "token": ("moldau.cli.root:token", "Create, renew and end delegation tokens."),
        "user": ("moldau.cli.root:user", "Show users of SCRAM, create them, change their passwords."),
        "cert": ("moldau.cli.root:cert", "Make certificates for a laptop."),
        "security": ("moldau.cli.root:security", "Tell what a server.properties leaves open to whom."),
        "txn": ("moldau.cli.root:txn", "Show transactions, find hanging ones and abort them."),
        "config": ("moldau.cli.root:config", "Show and change configs of topics, brokers and groups."),
        "cluster": ("moldau.cli.root:cluster", "Show the cluster and whether it is healthy."),
        "quorum": ("moldau.cli.root:quorum", "Show the controllers, and change who of them votes."),
        "partition": ("moldau.cli.root:partition", "Show, move and re-elect replicas of partitions."),
        "broker": ("moldau.cli.root:broker", "Show brokers and their log directories, drain and forget them."),
        "client": ("moldau.cli.root:client", "Show who is connected, with what, and how much they send."),
        "perf": ("moldau.cli.root:perf", "Measure throughput and latency."),
        "log": ("moldau.cli.root:log", "Look into the files of a data directory."),
        "profile": ("moldau.cli.root:profile", "Keep addresses and client settings under names."),
        "load": ("moldau.cli.load:load", "Load topics into a lake table, exactly once."),
        "lake": ("moldau.cli.root:lake", "Look after lake tables; replay them into topics."),
        "pipeline": ("moldau.cli.root:pipeline", "Run pipelines from topics and tables to topics and tables."),
        "console": ("moldau.cli.console:console", "Serve web pages about the cluster."),
        "mcp": ("moldau.cli.mcp:mcp", "Serve tools for agents, over the Model Context Protocol."),
        "help": ("moldau.cli.help:show_help", "Show a page about a topic, or the help of a command."),
        "completion": ("moldau.cli.completion:completion", "Print the completion script of a shell."),
        "install-kafka-names": ("moldau.cli.kafka.install:install", "Put Kafka's tool names into a directory."),
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
    help="Create, list, describe, change and delete topics.",
    context_settings=SETTINGS,
    commands_at={
        "create": ("moldau.cli.topic:create", "Create topics."),
        "list": ("moldau.cli.topic:list_topics", "List the topics."),
        "describe": ("moldau.cli.topic_describe:describe", "Show partitions, offsets and configs of topics."),
        "alter": ("moldau.cli.topic_alter:alter", "Change configs of topics, or how many partitions they have."),
        "add-partitions": ("moldau.cli.topic_alter:add_partitions", "Give a topic more partitions."),
        "delete-records": ("moldau.cli.topic_records:delete_records", "Delete the records before given offsets."),
        "truncate-to": ("moldau.cli.topic_records:truncate_to", "Delete everything before an offset or a time."),
        "delete": ("moldau.cli.topic:delete", "Delete topics and all their records."),
    },
)

group = LazyGroup(
    "group",
    help="Show groups of consumers and their lag, reset their offsets.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.group:list_groups", "List the groups of all kinds."),
        "describe": ("moldau.cli.group:describe", "Show state, offsets, lag and members of groups."),
        "reset-offsets": ("moldau.cli.group_offsets:reset_offsets", "Set the committed offsets of a group."),
        "delete-offsets": ("moldau.cli.group_offsets:delete_offsets", "Forget the offsets of topics."),
        "remove-members": ("moldau.cli.group:remove_members", "Make members leave a group."),
        "delete": ("moldau.cli.group:delete", "Delete groups without members."),
    },
)

share = LazyGroup(
    "share",
    help="Show share groups, how far they are and what they hold, reset their offsets.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.share:list_groups", "List the share groups with their lag."),
        "describe": ("moldau.cli.share:describe", "Show state, offsets, lag and members of share groups."),
        "offsets": ("moldau.cli.share_offsets:offsets", "Show start offsets and lag, one row a partition."),
        "reset": ("moldau.cli.share_offsets:reset", "Set the start offsets of a share group."),
        "delete": ("moldau.cli.share:delete", "Delete share groups, or what they know of topics."),
    },
)

quota = LazyGroup(
    "quota",
    help="Show and set what users, client ids and addresses may use of each broker, and who is throttled.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.quota:list_quotas", "List the quotas, and what is used of them now."),
        "describe": ("moldau.cli.quota_describe:describe", "Show which quotas hold for a client, and why."),
        "set": ("moldau.cli.quota:set_quotas", "Set quotas."),
        "remove": ("moldau.cli.quota:remove_quotas", "Take quotas away."),
    },
)

acl = LazyGroup(
    "acl",
    help="Show, test and change who may do what.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.acl:list_acls", "List the entries that allow and deny."),
        "test": ("moldau.cli.acl_decision:test", "Tell whether someone may do something, and why."),
        "create": ("moldau.cli.acl:create", "Allow or deny someone something."),
        "delete": ("moldau.cli.acl:delete", "Delete entries."),
    },
)

token = LazyGroup(
    "token",
    help="Create, renew and end delegation tokens: logins that end by themselves.",
    context_settings=SETTINGS,
    commands_at={
        "create": ("moldau.cli.token:create", "Create a token and show its secret, this once."),
        "renew": ("moldau.cli.token:renew", "Put off the end of a token."),
        "expire": ("moldau.cli.token:expire", "End a token, at once or soon."),
        "describe": ("moldau.cli.token:describe", "Show tokens and when they end."),
    },
)

user = LazyGroup(
    "user",
    help="Show users that log in with SCRAM, create and delete them, change their passwords.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.user:list_users", "List the users and their mechanisms."),
        "describe": ("moldau.cli.user_describe:describe", "Show mechanisms, ACLs and quotas of users."),
        "create": ("moldau.cli.user:create", "Create a user."),
        "alter": ("moldau.cli.user:alter", "Give a user another password."),
        "delete": ("moldau.cli.user:delete", "Delete users."),
    },
)

cert = LazyGroup(
    "cert",
    help="Make certificates for a laptop: an authority of its own, brokers and clients.",
    context_settings=SETTINGS,
    commands_at={
        "dev": ("moldau.cli.cert:dev", "Make or renew an authority and certificates."),
    },
)

security = LazyGroup(
    "security",
    help="Tell what settings leave open to whom.",
    context_settings=SETTINGS,
    commands_at={
        "check": ("moldau.cli.security_check:check", "Check a server.properties."),
    },
)

txn = LazyGroup(
    "txn",
    help="Show transactions, find those that hang, and abort them.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.txn:list_transactions", "List the transactional ids and their states."),
        "describe": ("moldau.cli.txn:describe", "Show transactions, or the producers of partitions."),
        "find-hanging": ("moldau.cli.txn:find_hanging", "Find transactions that no coordinator will end."),
        "abort": ("moldau.cli.txn:abort", "Abort a hanging transaction, or that of a transactional id."),
    },
)

config = LazyGroup(
    "config",
    help="Show and change configs of topics, brokers, groups and the cluster.",
    context_settings=SETTINGS,
    commands_at={
        "describe": ("moldau.cli.config:describe", "Show configs and where each value comes from."),
        "alter": ("moldau.cli.config:alter", "Set configs and take them away."),
    },
)

cluster = LazyGroup(
    "cluster",
    help="Show the cluster and whether it is healthy.",
    context_settings=SETTINGS,
    commands_at={
        "describe": ("moldau.cli.cluster:describe", "Show the cluster's id, controller, quorum and brokers."),
        "health": ("moldau.cli.cluster_health:health", "Tell whether everything is as it should be."),
    },
)

quorum = LazyGroup(
    "quorum",
    help="Show the controllers that keep the cluster's metadata, and change who of them votes.",
    context_settings=SETTINGS,
    commands_at={
        "describe": ("moldau.cli.quorum:describe", "Show leader, voters and observers, and how far each is."),
        "add-voter": ("moldau.cli.quorum:add_voter", "Give a controller a vote."),
        "remove-voter": ("moldau.cli.quorum:remove_voter", "Take a controller's vote away."),
    },
)

partition = LazyGroup(
    "partition",
    help="Show, move and re-elect replicas of partitions.",
    context_settings=SETTINGS,
    commands_at={
        "describe": ("moldau.cli.partition:describe", "Show leader, replicas and state of partitions."),
        "elect-leader": ("moldau.cli.partition:elect_leader", "Have the preferred replicas lead again."),
        "reassign": ("moldau.cli.partition_reassign:reassign", "Move replicas to other brokers."),
        "move-dir": ("moldau.cli.partition_move_dir:move_dir", "Move replicas to another log directory of a broker."),
    },
)

broker = LazyGroup(
    "broker",
    help="Show brokers and their log directories, drain and forget them.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.broker:list_brokers", "List the brokers."),
        "describe": ("moldau.cli.broker:describe", "Show address, partitions, log directories and configs."),
        "drain": ("moldau.cli.broker_leave:drain", "Have other brokers take over what this one leads or has."),
        "unregister": ("moldau.cli.broker_leave:unregister", "Forget a broker that will not come back."),
    },
)

client = LazyGroup(
    "client",
    help="Show who is connected to the brokers, with which software, and how much they send.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.client:list_clients", "List the clients that are connected now."),
    },
)

perf = LazyGroup(
    "perf",
    help="Measure throughput and latency of a cluster, from here.",
    context_settings=SETTINGS,
    commands_at={
        "produce": ("moldau.cli.perf:produce", "Send records as fast as it goes, or at a rate."),
        "consume": ("moldau.cli.perf:consume", "Read a topic as fast as it goes."),
        "latency": ("moldau.cli.perf_latency:latency", "Send one record at a time and wait until it comes back."),
    },
)

profile = LazyGroup(
    "profile",
    help="Keep addresses and client settings under names, so that they need not be typed.",
    context_settings=SETTINGS,
    commands_at={
        "list": ("moldau.cli.profile:list_profiles", "List the profiles."),
        "show": ("moldau.cli.profile:show", "Show the settings of a profile."),
        "create": ("moldau.cli.profile:create", "Create a profile."),
        "use": ("moldau.cli.profile:use", "Take a profile into use."),
        "delete": ("moldau.cli.profile:delete", "Delete a profile."),
        "path": ("moldau.cli.profile:path", "Print where a profile is kept."),
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

lake = LazyGroup(
    "lake",
    help="Look after lake tables that `moldau load` fills, and replay them into topics.",
    context_settings=SETTINGS,
    commands_at={
        "describe": ("moldau.cli.lake:describe", "Show schema, files, offsets and commits of a table."),
        "optimize": ("moldau.cli.lake:optimize", "Join small files into larger ones."),
        "vacuum": ("moldau.cli.lake:vacuum", "Remove files that no commit needs any more."),
        "expire": ("moldau.cli.lake:expire", "Delete rows of days that are older than a time."),
        "forget": ("moldau.cli.lake:forget", "Forget how far a topic is loaded, to load it anew."),
        "replay": ("moldau.cli.lake_replay:replay", "Send the rows of a table to a topic."),
    },
)

pipeline = LazyGroup(
    "pipeline",
    help="Run pipelines: sources, SQL or Python steps, sinks, written down in a TOML file.",
    context_settings=SETTINGS,
    commands_at={
        "run": ("moldau.cli.pipeline:run", "Run a pipeline once, or until it is stopped."),
        "validate": ("moldau.cli.pipeline:validate", "Check a pipeline's file without running it."),
        "status": ("moldau.cli.pipeline:status", "Show whether a pipeline runs, and how far it is."),
        "init": ("moldau.cli.pipeline:init", "Write a pipeline's file to begin with."),
    },
)
