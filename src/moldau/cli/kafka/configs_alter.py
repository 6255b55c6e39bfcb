"""`kafka-configs --alter`: sets configs and quotas and takes them away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, get_all, read_config
from moldau.cli.kafka.config_entities import ILLEGAL, RESOURCES, TERSE, Entities, singular
from moldau.cli.kafka.configs_quotas import ENDPOINT_SENTENCE, ENDPOINT_TYPE, ENTITY_TYPES, find_quotas
from moldau.cli.kafka.java_order import hash_map_order
from moldau.cli.kafka.options import JavaFailure, Options
from moldau.protocol.integers import INT_MAX

if TYPE_CHECKING:
    from moldau.client.admin import Admin

CLIENT_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS_DEFAULT = 4096
ITERATIONS_MAX = 16384
UNACCEPTABLE = ERRORS_PACKAGE + "UnacceptableCredentialException"
JAVA_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
# Commas and equals signs inside of brackets do not count.
OUTSIDE = r"(?=[^\]]*(?:\[|$))"


def alter(admin: Admin, options: Options, entities: Entities) -> None:
    kind, name = entities.types[0], entities.names[0]
    added, deleted = _read_added(options), _read_deleted(options)
    if kind in RESOURCES:
        _alter_resource(admin, kind, name, added, deleted)
    else:
        _check_quotas(entities, [*added], deleted)
        if kind != "ips" and any(key in MECHANISMS for key in [*added, *deleted]):
            _alter_user(admin, name, added, deleted)
        else:
            _alter_quotas(admin, entities, added, deleted)
    if name:
        print(f"Completed updating config for {singular(kind)} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _read_added(options: Options) -> dict[str, str]:
    added = {}
    file = options.text("add-config-file")
    if file is not None:
        added.update(read_config(file))
    text = options.text("add-config")
    if text is not None:
        pairs = [re.split(r"\s*=\s*" + OUTSIDE, part) for part in re.split("," + OUTSIDE, text)]
        if any(len(pair) != 2 for pair in pairs):
            raise JavaFailure(
                ILLEGAL,
                "requirement failed: Invalid entity config: all configs to be added must be in the format "
                '"key=val" or  "key=[val1,val2]" to group values which contain commas.',
            )
        added.update({key.strip(): re.sub(r"[\[\]]", "", value).strip() for key, value in pairs})
    _check_keys([*added])
    return added


def _read_deleted(options: Options) -> list[str]:
    deleted = [name.strip() for value in options.values("delete-config") for name in value.split(",")]
    _check_keys(deleted)
    return deleted


def _check_keys(keys: list[str]) -> None:
    for key in keys:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", key):
            raise JavaFailure(ILLEGAL, f"Invalid character found for config key: {key}")


def _alter_resource(admin: Admin, kind: str, name: str, added: dict[str, str], deleted: list[str]) -> None:
    from moldau.client.admin import DELETE, ConfigChange, ConfigResource

    resource = ConfigResource(RESOURCES[kind][0], name)
    if kind == "broker-loggers":
        known = {
            entry.name for entry in get_all("describeConfigs", lambda: admin.describe_configs([resource]))[resource]
        }
        unknown = [key for key in [*deleted, *added] if key not in known]
        if unknown:
            raise JavaFailure(TERSE[1], f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [ConfigChange(key, None, DELETE) for key in deleted]
    changes += [ConfigChange(key, value) for key, value in added.items()]
    get_all("incrementalAlterConfigs", lambda: admin.incremental_alter_configs({resource: changes}))


def _check_quotas(entities: Entities, added: list[str], deleted: list[str]) -> None:
    """Refuses what is no quota of such an entity."""
    if entities.types[0] == "ips":
        unknown = [key for key in [*added, *deleted] if key not in IP_QUOTAS]
        if unknown:
            sentence = "Only connection quota configs can be added for 'ips' using --bootstrap-server."
            raise JavaFailure(ILLEGAL, f"{sentence} Unexpected config names: {','.join(unknown)}")
        return
    clients = entities.types[0] == "clients" or len(entities.types) == 2
    known = CLIENT_QUOTAS if clients else CLIENT_QUOTAS + MECHANISMS
    what = "quota" if clients else "quota and SCRAM credential"
    whom = "clients" if clients else "users"
    for verb, keys, shape in (("added", added, "Set"), ("deleted", deleted, "ArrayBuffer")):
        unknown = [key for key in keys if key not in known]
        if unknown:
            sentence = f"Only {what} configs can be {verb} for '{whom}' using --bootstrap-server."
            raise JavaFailure(ILLEGAL, f"{sentence} Unexpected config names: {shape}({', '.join(unknown)})")
    keys = [*added, *deleted]
    if any(key in MECHANISMS for key in keys):
        if "" in entities.names:
            sentence = "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials"
            raise JavaFailure(ILLEGAL, f"{sentence} using --bootstrap-server.")
        if any(key in CLIENT_QUOTAS for key in keys):
            sentence = "Cannot alter both quota and SCRAM credential configs simultaneously for 'users'"
            raise JavaFailure(ILLEGAL, f"{sentence} using --bootstrap-server.")


def _alter_quotas(admin: Admin, entities: Entities, added: dict[str, str], deleted: list[str]) -> None:
    from moldau.client.admin import QuotaEntity

    if len(entities.types) != len(entities.names):
        raise JavaFailure(ILLEGAL, "Exactly one entity name must be specified for every entity type")
    present = next(iter(find_quotas(admin, entities.types, entities.names).values()), {})
    missing = [key for key in deleted if key not in present]
    if missing:
        raise JavaFailure(TERSE[1], f"Invalid config(s): {','.join(missing)}")
    whom = zip(entities.types, entities.names, strict=True)
    entity = QuotaEntity.of({ENTITY_TYPES[kind]: name or None for kind, name in whom})
    changes: dict[str, float | None] = {key: _read_number(key, added[key]) for key in hash_map_order(added)}
    changes.update(dict.fromkeys(deleted))
    get_all("alterClientQuotas", lambda: admin.alter_client_quotas({entity: changes}))


def _read_number(key: str, value: str) -> float:
    """A number as Java's Double.parseDouble takes it."""
    if JAVA_NUMBER.fullmatch(value.strip()) is None:
        raise JavaFailure(ILLEGAL, f"Cannot parse quota configuration value for {key}: {value}")
    return float(value.strip().rstrip("fFdD"))


def _alter_user(admin: Admin, user: str, added: dict[str, str], deleted: list[str]) -> None:
    from moldau.client.admin import ScramDeletion, ScramMechanism, ScramUpsertion

    changes: list[ScramUpsertion | ScramDeletion] = [
        ScramDeletion(user, ScramMechanism[key.replace("-", "_")]) for key in deleted
    ]
    for key, value in added.items():
        iterations, password = _read_credential(key, value)
        changes.append(ScramUpsertion(user, password, ScramMechanism[key.replace("-", "_")], iterations))
    if getattr(admin, "_to_controllers", False):
        raise JavaFailure(ENDPOINT_TYPE, ENDPOINT_SENTENCE)
    get_all("alterUserScramCredentials", lambda: admin.alter_user_scram_credentials(changes))


def _read_credential(mechanism: str, text: str) -> tuple[int, str]:
    match = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if match is None:
        raise JavaFailure(ILLEGAL, f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = _read_iterations(match[1])
    if iterations < ITERATIONS_DEFAULT:
        sentence = f"Iterations {iterations} is less than the minimum {ITERATIONS_DEFAULT} required for {mechanism}"
        raise JavaFailure(ILLEGAL, sentence)
    # Brokers say these; our client does not even ask them.
    if iterations > ITERATIONS_MAX:
        raise JavaFailure(UNACCEPTABLE, "Too many iterations")
    if not match[2]:
        raise JavaFailure(UNACCEPTABLE, "Password must not be empty")
    return iterations, match[2]


def _read_iterations(given: str | None) -> int:
    if given is None or given == "-1":
        return ITERATIONS_DEFAULT
    if given in ("", "-") or not -INT_MAX - 1 <= int(given) <= INT_MAX:
        raise JavaFailure(ILLEGAL, f'For input string: "{given}"')
    return int(given)
