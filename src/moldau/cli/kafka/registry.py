"""Kafka's tools by name: where each lives. A tool is a function from its arguments to an exit code, imported on use."""

from __future__ import annotations

from importlib import import_module

# name -> (module:function, one line of help)
TOOLS: dict[str, tuple[str, str]] = {
    "kafka-acls": ("moldau.cli.kafka.acls:main", "List, add and remove ACLs."),
    "kafka-console-consumer": ("moldau.cli.kafka.console_consumer:main", "Print records."),
    "kafka-console-producer": ("moldau.cli.kafka.console_producer:main", "Send lines as records."),
    "kafka-console-share-consumer": ("moldau.cli.kafka.console_share_consumer:main", "Print records of share groups."),
    "kafka-consumer-groups": ("moldau.cli.kafka.consumer_groups:main", "Show and change groups of consumers."),
    "kafka-consumer-perf-test": ("moldau.cli.kafka.consumer_perf:main", "Measure how fast records can be read."),
    "kafka-delegation-tokens": (
        "moldau.cli.kafka.delegation_tokens:main",
        "Create, renew and expire delegation tokens.",
    ),
    "kafka-delete-records": ("moldau.cli.kafka.delete_records:main", "Delete records down to an offset."),
    "kafka-dump-log": ("moldau.cli.kafka.dump_log:main", "Print the files of a data directory."),
    "kafka-broker-api-versions": ("moldau.cli.kafka.broker_api_versions:main", "Show the apis of brokers."),
    "kafka-client-metrics": ("moldau.cli.kafka.client_metrics:main", "Subscribe to the metrics of clients."),
    "kafka-cluster": ("moldau.cli.kafka.cluster:main", "Show the cluster's id and endpoints, unregister brokers."),
    "kafka-configs": ("moldau.cli.kafka.configs:main", "Show and change configs, quotas and SCRAM users."),
    "kafka-e2e-latency": ("moldau.cli.kafka.e2e_latency:main", "Measure the time from producer to consumer."),
    "kafka-features": ("moldau.cli.kafka.features:main", "Show and change the levels of features."),
    "kafka-get-offsets": ("moldau.cli.kafka.get_offsets:main", "Show offsets of partitions."),
    "kafka-groups": ("moldau.cli.kafka.groups:main", "List groups of all kinds."),
    "kafka-leader-election": ("moldau.cli.kafka.leader_election:main", "Have leaders of partitions elected."),
    "kafka-log-dirs": ("moldau.cli.kafka.log_dirs:main", "Show log directories and the replicas in them."),
    "kafka-metadata-quorum": ("moldau.cli.kafka.metadata_quorum:main", "Show the metadata quorum."),
    "kafka-metadata-shell": ("moldau.cli.kafka.metadata_shell:main", "Look into a snapshot of the metadata."),
    "kafka-producer-perf-test": ("moldau.cli.kafka.producer_perf:main", "Measure how fast records can be sent."),
    "kafka-reassign-partitions": ("moldau.cli.kafka.reassign_partitions:main", "Move replicas of partitions."),
    "kafka-replica-verification": (
        "moldau.cli.kafka.replica_verification:main",
        "Compare the replicas of partitions.",
    ),
    "kafka-share-consumer-perf-test": (
        "moldau.cli.kafka.share_consumer_perf:main",
        "Measure how fast a share group can read.",
    ),
    "kafka-share-groups": ("moldau.cli.kafka.share_groups:main", "Show and change share groups."),
    "kafka-storage": ("moldau.cli.kafka.storage:main", "Format log directories and show what they hold."),
    "kafka-topics": ("moldau.cli.kafka.topics:main", "Create, list, describe, alter and delete topics."),
    "kafka-transactions": ("moldau.cli.kafka.transactions:main", "Show transactions, find and abort hanging ones."),
    "kafka-verifiable-producer": ("moldau.cli.kafka.verifiable_producer:main", "Send numbers and tell of each."),
    "kafka-verifiable-share-consumer": (
        "moldau.cli.kafka.verifiable_share_consumer:main",
        "Read in a share group and tell of each step.",
    ),
}


def find(name: str) -> str | None:
    """The full name of a tool that was asked for with or without `.sh`; None when there is none."""
    plain = name.removesuffix(".sh")
    return plain if plain in TOOLS else None


def run(name: str, arguments: list[str]) -> int:
    """Runs the tool of that (full) name."""
    module, _, function = TOOLS[name][0].partition(":")
    code: int = getattr(import_module(module), function)(arguments)
    return code
