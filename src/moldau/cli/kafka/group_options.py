"""What the options of `kafka-consumer-groups` and `kafka-share-groups` have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.cli.kafka.options import Exit, JavaFailure, OptionParser, Options, check_invalid

VIEWS = ("members", "offsets", "state")


def check_available(options: Options, actions_of: Mapping[str, Sequence[str]]) -> None:
    """Some options are there beside certain actions only."""
    unavailable = [
        name for name, actions in actions_of.items() if options.has(name) and not any(map(options.has, actions))
    ]
    if unavailable:
        raise JavaFailure(
            "joptsimple.UnavailableOptionException",
            f"Option(s) [{', '.join(unavailable)}] are unavailable given other options on the command line",
        )


def check_views(options: Options, parser: OptionParser) -> None:
    """--describe shows one thing at a time."""
    if sum(options.has(view) for view in VIEWS) > 1:
        names = ", ".join(f"[{view}]" for view in VIEWS)
        raise Exit(1, f"Option [describe] takes at most one of these options: {names}", parser)
    if options.has("state") and options.text("state") is not None:
        raise Exit(1, "Option [describe] does not take a value for [state]", parser)


def check_delete_offsets(options: Options, parser: OptionParser) -> None:
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise Exit(1, "Option [delete-offsets] takes the following options: [group], [topic]", parser)


def check_both_ways(options: Options, parser: OptionParser) -> None:
    """A reset is shown or done."""
    if options.has("dry-run") and options.has("execute"):
        raise Exit(1, "Option [reset-offsets] only accepts one of [execute] and [dry-run]", parser)


def check_one_scenario(options: Options, scenarios: Sequence[str]) -> None:
    for scenario in scenarios:
        check_invalid(options, scenario, *(other for other in scenarios if other != scenario))


def check_unmixed(options: Options) -> None:
    check_invalid(options, "group", "all-groups")
    check_invalid(options, "group", "list")
    check_invalid(options, "topic", "list", "describe")
