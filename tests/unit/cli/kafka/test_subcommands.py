"""Command lines with commands: the rules, usage lines and errors of the library that Kafka's newer tools use."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.options import Exit
from moldau.cli.kafka.subcommands import CommandParser, UsageError, justify


def tool() -> CommandParser:
    parser = CommandParser("kafka-tool", "A tool.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--bootstrap-server", "-b")
    group.add_argument("--bootstrap-controller", "-C")
    commands = parser.add_subparsers()
    show = commands.add_parser("show")
    show.add_argument("--node-id", "-n", type=int)
    show.add_argument("--all", "-a", action="store_true")
    show.add_argument("--quick", "-q", action="store_true")
    change = commands.add_parser("change")
    change.add_argument("--feature", "-f", action="append", required=True)
    change.add_argument("--props", nargs="+", metavar="NAME=VALUE")
    change.add_argument("--rate", type=float)
    return parser


def reason(*words: str) -> str:
    with pytest.raises(UsageError) as error:
        tool().parse_args(words)
    assert error.value.code == 1
    return error.value.reason


def test_options_have_values_in_all_the_usual_ways() -> None:
    for words in (["-n", "3"], ["-n3"], ["--node-id=3"], ["--node", "3"], ["-aqn3"]):
        found = tool().parse_args(["-b", "x:1", "show", *words])
        assert (found.command, found.bootstrap_server, found.node_id) == ("show", "x:1", 3)
    assert tool().parse_args(["-b", "x", "show", "-aq"]).quick is True
    assert tool().parse_args(["-b", "x", "sh", "-n", "-5"]).node_id == -5


def test_values_gather_where_an_option_may_come_again() -> None:
    found = tool().parse_args(
        ["-b", "x", "change", "-f", "a=1", "--feature", "b=2", "--props", "c", "d", "--rate", "1e3"]
    )
    assert (found.feature, found.props, found.rate) == (["a=1", "b=2"], ["c", "d"], 1000.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-b x", "too few arguments"),
        ("show", "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required"),
        ("-b x -C y show", "argument --bootstrap-controller/-C: not allowed with argument --bootstrap-server/-b"),
        ("-b x change", "argument --feature/-f is required"),
        ("change", "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required"),
        ("-b x show --node-id", "argument --node-id/-n: expected one argument"),
        ("-b x change -f a --props", "argument --props: expected 1 argument(s)"),
        ("-b x show -n x", "argument --node-id/-n: could not convert 'x' to Integer (For input string: \"x\")"),
        ("-b x change -f a --rate x", "argument --rate: could not convert 'x' to Double (For input string: \"x\")"),
        ("-b x show --all=3", "argument --all/-a: ignore implicit argument '3'"),
        ("-b x show more words", "unrecognized arguments: 'more words'"),
        ("-b x show -az", "unrecognized arguments: '-az'"),
        ("--boot x show", "ambiguous option: --boot could match --bootstrap-controller, --bootstrap-server"),
        ("-b x nope", "invalid choice: 'nope' (choose from 'show', 'change')"),
    ],
)
def test_errors_are_said_in_the_words_of_the_real_tools(words: str, said: str) -> None:
    assert reason(*words.split()) == said


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(UsageError) as error:
        tool().parse_args(["-b", "x", "shwo"])
    assert error.value.message.endswith("\n\nDid you mean:\n\tshow")
    with pytest.raises(UsageError) as error:
        tool().parse_args(["-b", "x", "show", "--nod-id", "1"])
    assert error.value.message.endswith("\n\nDid you mean:\n\t--node-id")


def test_the_usage_of_a_command_shows_what_must_stand_before_it() -> None:
    with pytest.raises(UsageError) as error:
        tool().parse_args(["-b", "x", "show", "--nonsense"])
    assert error.value.message == (
        "usage: kafka-tool (--bootstrap-server BOOTSTRAP_SERVER |\n"
        "                  --bootstrap-controller BOOTSTRAP_CONTROLLER) show [-h]\n"
        "                  [--node-id NODE_ID] [--all] [--quick]\n"
        "kafka-tool: error: unrecognized arguments: '--nonsense'"
    )


def test_help_ends_with_the_code_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    for code in (0, 1):
        parser = CommandParser("kafka-tool", "A tool.", help_code=code)
        with pytest.raises(Exit) as end:
            parser.parse_args(["-h"])
        assert end.value.code == code
        assert "--help" in capsys.readouterr().out


def test_long_errors_are_justified() -> None:
    text = "kafka-producer-perf-test: error: ambiguous option: --p could match --payload-delimiter, --payload-file,"
    assert justify(text + " --payload-monotonic, --print-metrics, --producer-props, --producer.config", 75) == (
        "kafka-producer-perf-test: error:  ambiguous  option:  --p  could  match  --\n"
        "payload-delimiter, --payload-file, --payload-monotonic, --print-metrics, --\n"
        "producer-props, --producer.config"
    )
