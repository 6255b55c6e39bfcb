"""Shell completion: the script for each shell, and what can be completed: topics, groups, brokers, profiles.

Names are asked of the cluster, with a timeout short enough not to be noticed; whatever goes wrong there, nothing is
offered, because a shell that prints errors while one types is worse than no completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from moldau.cli.options import Connection, open_admin, open_topic_admin, resolve

TIMEOUT_S = 0.7

SHELLS = ("bash", "zsh", "fish")


def _ask(ctx: click.Context, question: Callable[[Connection], Iterable[str]], incomplete: str) -> list[str]:
    try:
        given = ctx.params.get("bootstrap_server")
        address, profile, _ = resolve(given, ctx.get_parameter_source("bootstrap_server"), ctx)
        connection = Connection(address, TIMEOUT_S, {}, profile)
        return [name for name in question(connection) if name.startswith(incomplete)]
    except Exception:
        return []


def _topic_names(connection: Connection) -> list[str]:
    with open_topic_admin(connection) as admin:
        return [topic.name for topic in admin.list_topics()]


def _broker_ids(connection: Connection) -> list[str]:
    with open_admin(connection) as admin:
        return [str(broker.id) for broker in admin.describe_cluster().brokers]


def _group_names(connection: Connection) -> list[str]:
    with open_admin(connection) as admin:
        return [group.group_id for group in admin.list_groups().found]


def _share_group_names(connection: Connection) -> list[str]:
    with open_admin(connection) as admin:
        return [group.group_id for group in admin.list_groups(types=["share"]).found]


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics, without Kafka's own unless their underscores were begun, and without those given already."""
    chosen = ctx.params.get(param.name or "") or ()
    given = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    found = _ask(ctx, _topic_names, incomplete)
    return [name for name in found if name not in given and (incomplete or not name.startswith("__"))]


def complete_brokers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _ask(ctx, _broker_ids, incomplete)


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _ask(ctx, _group_names, incomplete)


def complete_share_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _ask(ctx, _share_group_names, incomplete)


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, topics, groups and brokers.

    \b
    bash, in ~/.bashrc:                      eval "$(moldau completion bash)"
    zsh, in ~/.zshrc:                        eval "$(moldau completion zsh)"
    fish, in ~/.config/fish/config.fish:     moldau completion fish | source
    """
    from click.shell_completion import get_completion_class

    from moldau.cli.root import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "moldau", "_MOLDAU_COMPLETE").source())
