"""Properties files, the KAFKA_ environment and overrides."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.config.definitions import ConfigError
from moldau.config.properties import format_properties, parse_properties
from moldau.server.config_file import environment_values, load_config, read_values, variable_to_key


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    """Separators, comments, continuation lines, blanks and escapes."""
    text = (
        "# comment\n ! another\n\n"
        "plain=value\n"
        "  spaced   =   value with blanks  \n"
        "colon:value\n"
        "blank value\n"
        "url=PLAINTEXT://:9092\n"
        "list=one,\\\n      two,\\\r\n   three\n"
        "not.continued=a\\\\\n"
        "escaped\\ key\\==tab\\tnew\\nline\\u00e9\\q\n"
        "empty=\nalone\n"
        "#comment with \\\nafter=1\n"
        "twice=1\ntwice=2\n"
        "last=open\\"
    )
    assert parse_properties(text) == {
        "plain": "value",
        "spaced": "value with blanks  ",
        "colon": "value",
        "blank": "value",
        "url": "PLAINTEXT://:9092",
        "list": "one,two,three",
        "not.continued": "a\\",
        "escaped key=": "tab\tnew\nlineéq",
        "empty": "",
        "alone": "",
        "after": "1",
        "twice": "2",
        "last": "open",
    }


def test_a_malformed_unicode_escape_is_refused() -> None:
    """Java refuses the file, and so do we."""
    with pytest.raises(ValueError, match="malformed"):
        parse_properties("a=\\u12g4")


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_written_properties_are_read_back(values: dict[str, str]) -> None:
    """Whatever keys and values are written, the same come back."""
    assert parse_properties(format_properties(values)) == values


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No file makes the parser fail in another way than it says."""
    try:
        parse_properties(text)
    except ValueError as error:
        assert "malformed" in str(error)


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_LISTENER_NAME_MY__OWN_SSL_KEY_PASSWORD", "listener.name.my_own.ssl.key.password"),
        ("KAFKA_LISTENER_NAME_A___B_MAX_CONNECTIONS", "listener.name.a-b.max.connections"),
    ],
)
def test_variables_become_keys_by_the_rule_of_the_container_image(variable: str, key: str) -> None:
    """One underscore is a dot, two are an underscore, three are a dash."""
    assert variable_to_key(variable) == key


def test_variables_for_the_jvm_and_the_scripts_are_no_configs() -> None:
    """Only what could be a broker key is taken from the environment."""
    environment = {
        "KAFKA_NODE_ID": "4",
        "KAFKA_OPTS": "-Dx=y",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "DEBUG",
        "KAFKA_LOG_DIRS": "/data",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
        "KAFKA_VERSION": "4.3.1",
        "KAFKA_": "x",
        "PATH": "/bin",
    }
    assert environment_values(environment) == {"node.id": "4", "log.dirs": "/data"}


def test_overrides_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    """Each source replaces single keys of the one before."""
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nlog.dirs=/file\nnum.partitions=2\n")
    environment = {"KAFKA_LOG_DIRS": "/environment", "KAFKA_NODE_ID": "2"}
    values = read_values(str(path), ["node.id=3", "advertised.listeners=A://h:1?x=y"], environment)
    assert values == {
        "node.id": "3",
        "log.dirs": "/environment",
        "num.partitions": "2",
        "advertised.listeners": "A://h:1?x=y",
    }


def test_without_a_file_one_node_serves_alone() -> None:
    """The built-in configuration is a broker and controller for clients on this machine."""
    config = load_config(environment={})
    assert config.is_broker
    assert config.is_controller
    assert (config.node_id, config.log_dirs) == (1, ["./moldau-data"])
    assert [(endpoint.host, endpoint.port) for endpoint in config.broker_listeners()] == [("", 9092)]
    assert [(endpoint.host, endpoint.port) for endpoint in config.advertised()] == [("localhost", 9092)]
    assert [(endpoint.host, endpoint.port) for endpoint in config.controller_listeners()] == [("127.0.0.1", 9093)]


def test_other_listeners_are_not_advertised_with_the_built_in_port() -> None:
    """Who moves the listeners does not have to repeat the advertised ones."""
    config = load_config(overrides=["listeners=PLAINTEXT://127.0.0.1:19,CONTROLLER://127.0.0.1:20"], environment={})
    assert [endpoint.port for endpoint in config.advertised()] == [19]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [(["novalue"], "--override takes key=value, not 'novalue'"), (["=x"], "--override takes key=value, not '=x'")],
)
def test_a_bad_override_says_how_to_write_it(overrides: list[str], message: str) -> None:
    """The message shows the form."""
    with pytest.raises(ConfigError, match=message):
        read_values(overrides=overrides, environment={})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The path is in the message."""
    with pytest.raises(ConfigError, match=r"cannot read the properties file .*nowhere: No such file"):
        read_values(str(tmp_path / "nowhere"), environment={})


def test_a_file_that_is_not_utf8_is_read_as_latin1(tmp_path: Path) -> None:
    """Files written for Java keep working."""
    path = tmp_path / "server.properties"
    path.write_bytes("broker.rack=Köln\n".encode("latin-1"))
    assert read_values(str(path), environment={}) == {"broker.rack": "Köln"}
