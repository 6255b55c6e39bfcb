"""Writes the message classes in src/moldau/protocol/{messages,stored} from the texts in schemas/.

    python tools/generate_messages.py            write what is stale
    python tools/generate_messages.py --check    write nothing, fail if anything is stale

schemas/README.md explains the format. What a class does not do is decided here, once: no loop over fields and no
lookup happens at run time, each class compares the version and reads or writes its fields one after the other.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
PACKAGE = ROOT / "src" / "moldau" / "protocol"
LINE_LENGTH = 120
GENERATED = "(generated)."

NUMBERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
FIXED_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Records",
    **dict.fromkeys(NUMBERS, "int"),
}
METHODS = {"bool": "boolean", "bytes": "bytes_"}
# Names that decode and encode use themselves; a field of that name gets another local name.
TAKEN = {"version", "reader", "writer", "count", "tag", "tags", "end", "unknown_tags", "part"}


class SchemaError(Exception):
    """A schema text that does not follow the format."""


@dataclass(frozen=True)
class Versions:
    """From the lowest to the highest, both included."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))


@dataclass
class Struct:
    name: str
    versions: Versions | None = None
    fields: list[Field] = field(default_factory=list)


@dataclass
class Field:
    name: str
    kind: str
    is_array: bool
    nullable: Versions | None
    versions: Versions
    tag: int | None = None
    tagged: Versions | None = None
    default: str | None = None
    ignorable: bool = False
    never_compact: bool = False
    struct: Struct | None = None

    @property
    def element_type(self) -> str:
        return self.struct.name if self.struct is not None else PYTHON_TYPES[self.kind]

    @property
    def is_optional(self) -> bool:
        return self.nullable is not None or self.kind == "records"

    @property
    def python_type(self) -> str:
        plain = f"list[{self.element_type}]" if self.is_array else self.element_type
        return f"{plain} | None" if self.is_optional else plain

    @property
    def default_is_null(self) -> bool:
        return self.default == "null" or self.kind == "records"

    @property
    def local(self) -> str:
        return f"{self.name}_" if self.name in TAKEN else self.name


@dataclass
class Schema:
    """One message, or one kind of stored record, with the structs inside of it."""

    word: str
    name: str
    key: int | None
    versions: Versions
    flexible_from: int | None
    structs: dict[str, Struct] = field(default_factory=dict)

    @property
    def top(self) -> Struct:
        return self.structs[self.name]

    def is_flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from


# Reading the texts


def parse_versions(text: str, highest: int) -> Versions:
    if match := re.fullmatch(r"(\d+)\+", text):
        return Versions(int(match[1]), highest)
    if match := re.fullmatch(r"(\d+)-(\d+)", text):
        return Versions(int(match[1]), int(match[2]))
    if re.fullmatch(r"\d+", text):
        return Versions(int(text), int(text))
    raise SchemaError(f"not versions: {text!r}")


def parse_head(line: str, api: tuple[int, str] | None) -> Schema:
    """`request, versions 4-18, flexible 12+` in the file of an api, `record 3 PartitionRecord, ...` elsewhere."""
    subject, *clauses = [part.strip() for part in line.split(",")]
    words = subject.split()
    if api is not None:
        if len(words) != 1 or words[0] not in ("request", "response"):
            raise SchemaError(f"neither request nor response: {line!r}")
        key: int | None = api[0]
        name = api[1] + words[0].capitalize()
    else:
        key = int(words[1]) if len(words) == 3 else None
        name = words[-1]
    versions = None
    flexible_from = None
    for clause in clauses:
        word, _, value = clause.partition(" ")
        if word in ("version", "versions"):
            versions = parse_versions(value, -1)
        elif word == "flexible":
            flexible_from = int(value.removesuffix("+"))
        else:
            raise SchemaError(f"unknown clause {clause!r} in {line!r}")
    if versions is None:
        raise SchemaError(f"no versions in {line!r}")
    schema = Schema(words[0], name, key, versions, flexible_from)
    schema.structs[name] = Struct(name, versions)
    return schema


def parse_field(line: str, schema: Schema, parent: Versions) -> Field:
    name, kind, *rest = line.split()
    highest = schema.versions.highest
    versions = parse_versions(rest.pop(0), highest) if rest and rest[0][0].isdigit() else parent
    is_nullable = kind.endswith("?")
    kind = kind.removesuffix("?")
    is_array = kind.startswith("[")
    result = Field(name, kind.strip("[]"), is_array, versions if is_nullable else None, versions)
    for attribute in " ".join(rest).split(", ") if rest else []:
        if match := re.fullmatch(r"tag (\d+)(?: in (\S+))?", attribute):
            result.tag = int(match[1])
            result.tagged = parse_versions(match[2], highest) if match[2] else versions
        elif match := re.fullmatch(r"null in (\S+)", attribute):
            result.nullable = parse_versions(match[1], highest)
        elif match := re.fullmatch(r"default (\S+)", attribute):
            result.default = match[1]
        elif attribute == "ignorable":
            result.ignorable = True
        elif attribute == "never compact":
            result.never_compact = True
        else:
            raise SchemaError(f"unknown attribute {attribute!r} in {line!r}")
    return result


def parse_body(schema: Schema, lines: list[str]) -> None:
    """Fields by indentation; deeper lines belong to the struct of the field above them."""
    open_structs = [schema.top]
    for line in lines:
        words = line.split()
        if words[0] == "struct":
            shared = schema.structs.setdefault(words[1], Struct(words[1]))
            shared.versions = schema.versions
            open_structs = [schema.top, shared]
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        del open_structs[depth:]
        parent = open_structs[-1]
        assert parent.versions is not None
        item = parse_field(line, schema, parent.versions)
        parent.fields.append(item)
        if item.kind not in PYTHON_TYPES:
            item.struct = schema.structs.setdefault(item.kind, Struct(item.kind))
            item.struct.versions = item.struct.versions or item.versions
            open_structs.append(item.struct)


def settle_versions(schema: Schema) -> None:
    """A struct exists in the versions of the fields that use it; nothing else is generated for it."""
    for struct in schema.structs.values():
        if struct is not schema.top:
            struct.versions = None
    for _ in schema.structs:
        for struct in list(schema.structs.values()):
            for item in struct.fields:
                if item.struct is None or struct.versions is None:
                    continue
                lowest = max(item.versions.lowest, struct.versions.lowest)
                highest = min(item.versions.highest, struct.versions.highest)
                known = item.struct.versions
                if known is not None:
                    lowest, highest = min(lowest, known.lowest), max(highest, known.highest)
                item.struct.versions = Versions(lowest, highest)
    for struct in schema.structs.values():
        if struct.versions is None:
            raise SchemaError(f"struct {struct.name} of {schema.name} is not used")
        if not struct.fields and struct is not schema.top:
            raise SchemaError(f"struct {struct.name} of {schema.name} has no fields")


def parse_file(path: Path) -> list[Schema]:
    api: tuple[int, str] | None = None
    schemas: list[Schema] = []
    bodies: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].rstrip()
        if not line:
            continue
        if line.startswith("api "):
            _, key, name = line.partition(",")[0].split()
            api = (int(key), name)
        elif not line.startswith(" "):
            schemas.append(parse_head(line, api))
            bodies.append([])
        else:
            bodies[-1].append(line)
    for schema, body in zip(schemas, bodies, strict=True):
        parse_body(schema, body)
        settle_versions(schema)
    return schemas


# Writing the classes


def wrap(before: str, items: list[str], after: str, indent: str) -> list[str]:
    """On one line if it fits, otherwise one item a line."""
    line = f"{indent}{before}{', '.join(items)}{after}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"{indent}{before}", *[f"{indent}    {item}," for item in items], f"{indent}{after}"]


def default_value(item: Field) -> str:
    """What a field holds when it is not on the wire, as Python text."""
    if item.default_is_null:
        return "None"
    if item.is_array:
        return "[]"
    if item.struct is not None:
        return f"{item.struct.name}()"
    if item.kind == "bool":
        return "True" if item.default == "true" else "False"
    if item.kind == "string":
        return '""' if item.default in (None, '""') else f'"{item.default}"'
    if item.kind == "float64":
        return item.default or "0.0"
    return {"uuid": "ZERO_UUID", "bytes": 'b""'}.get(item.kind) or item.default or "0"


def parameter(item: Field) -> str:
    """A parameter of __init__. A list or struct that is not given is made anew for each instance."""
    if item.is_array and not item.default_is_null and item.nullable is not None:
        return f"{item.name}: {item.python_type} = NOT_GIVEN"
    if (item.is_array or item.struct is not None) and not item.default_is_null:
        # A struct that may be null is null unless it is given, also where a missing tag means a struct of defaults.
        return f"{item.name}: {item.python_type.removesuffix(' | None')} | None = None"
    return f"{item.name}: {item.python_type} = {default_value(item)}"


def assignment(item: Field) -> str:
    value = item.name
    if item.is_array and not item.default_is_null and item.nullable is not None:
        value = f"[] if {item.name} is NOT_GIVEN else {item.name}"
    elif (item.is_array or item.struct is not None) and not item.default_is_null and item.nullable is None:
        value = f"{default_value(item)} if {item.name} is None else {item.name}"
    line = f"        self.{item.name}: {item.python_type} = {value}"
    return line if len(line) <= LINE_LENGTH else line.replace(f"= {value}", f"= (\n            {value}\n        )")


def differs_from_default(item: Field) -> str:
    value = f"self.{item.name}"
    if item.default_is_null:
        return f"{value} is not None"
    if item.is_array:
        return f"{value} is None or len({value}) > 0" if item.nullable is not None else f"len({value}) > 0"
    if item.struct is not None:
        given = f"not {value}.is_default()"
        return f"{value} is None or {given}" if item.nullable is not None else given
    if item.kind == "bool":
        return f"not {value}" if item.default == "true" else value
    return f"{value} != {default_value(item)}"


def smallest_element_bytes(schema: Schema, item: Field, version: int) -> int:
    """The fewest bytes of one element in any version that is encoded like this one; one number keeps the code short."""
    alike = [v for v in item.versions if schema.is_flexible(v) == schema.is_flexible(version)]
    return min(smallest_bytes(schema, item, v) for v in alike)


def smallest_bytes(schema: Schema, item: Field, version: int) -> int:
    """The fewest bytes that one value (of an array: one element) takes in that version."""
    if item.struct is not None:
        return smallest_struct_bytes(schema, item.struct, version)
    if item.kind in FIXED_BYTES:
        return FIXED_BYTES[item.kind]
    if schema.is_flexible(version):
        return 1
    return 2 if item.kind == "string" else 4


def smallest_struct_bytes(schema: Schema, struct: Struct, version: int) -> int:
    total = 1 if schema.is_flexible(version) else 0
    for item in struct.fields:
        if version not in item.versions or (item.tagged is not None and version in item.tagged):
            continue
        if item.is_array or (item.struct is not None and item.nullable is not None and version in item.nullable):
            total += 1 if schema.is_flexible(version) or not item.is_array else 4
        else:
            total += smallest_bytes(schema, item, version)
    return max(total, 1)


def method_name(item: Field, compact: bool, nullable: bool) -> str:
    if item.kind not in ("string", "bytes", "records"):
        return METHODS.get(item.kind, item.kind)
    prefix = ("compact_" if compact else "") + ("nullable_" if nullable else "")
    return prefix + item.kind if prefix else METHODS.get(item.kind, item.kind)


def list_method(item: Field, compact: bool) -> str:
    if item.kind == "string" and compact:
        return "compact_string_list"
    if item.kind not in ("int8", "int16", "int32", "int64", "uuid", "string"):
        raise SchemaError(f"no list of {item.kind}")
    return f"{item.kind}_list"


def read_value(schema: Schema, item: Field, version: int) -> list[str]:
    """The statements that read a field in that version into its local."""
    compact = schema.is_flexible(version) and not item.never_compact
    nullable = item.nullable is not None and version in item.nullable
    local = item.local
    if item.is_array:
        return read_array(schema, item, version, compact, nullable)
    if item.struct is None:
        return [f"{local} = reader.{method_name(item, compact, nullable)}()"]
    decode = f"{item.struct.name}.decode(reader, version)"
    # A tagged one marks null with 0, others with -1.
    there = "> 0" if item.tag is not None else ">= 0"
    return [f"{local} = {decode} if reader.int8() {there} else None" if nullable else f"{local} = {decode}"]


def read_array(schema: Schema, item: Field, version: int, compact: bool, nullable: bool) -> list[str]:
    local = item.local
    method = ("compact_" if compact else "") + ("nullable_" if nullable else "") + "array_length"
    lines = [f"count = reader.{method}({smallest_element_bytes(schema, item, version)})"]
    if item.struct is None:
        call = f"reader.{list_method(item, compact)}(count)"
        return [*lines, f"{local} = None if count < 0 else {call}" if nullable else f"{local} = {call}"]
    loop = [
        f"{local} = []",
        "for _ in range(count):",
        f"    {local}.append({item.struct.name}.decode(reader, version))",
    ]
    if not nullable:
        return lines + loop
    return [*lines, "if count < 0:", f"    {local} = None", "else:", *[f"    {line}" for line in loop]]


def write_value(schema: Schema, item: Field, version: int, writer: str = "writer") -> list[str]:
    compact = schema.is_flexible(version) and not item.never_compact
    nullable = item.nullable is not None and version in item.nullable
    value = f"self.{item.name}"
    lines = []
    if item.is_optional and not nullable:
        lines = [f"if {value} is None:", f'    raise cannot_send("{item.name}", version)']
    if item.is_array:
        return lines + write_array(item, compact, nullable, writer)
    if item.struct is None:
        return [*lines, f"{writer}.{method_name(item, compact, nullable)}({value})"]
    encode = f"{value}.encode({writer}, version)"
    if not nullable:
        return [*lines, encode]
    null = "0" if item.tag is not None else "-1"
    return [f"if {value} is None:", f"    {writer}.int8({null})", "else:", f"    {writer}.int8(1)", f"    {encode}"]


def write_array(item: Field, compact: bool, nullable: bool, writer: str) -> list[str]:
    value = f"self.{item.name}"
    length = f"{writer}.{'compact_' if compact else ''}array_length"
    if item.struct is None:
        elements = [f"{writer}.{list_method(item, compact)}({value})"]
    else:
        elements = [f"for {item.name}_element in {value}:", f"    {item.name}_element.encode({writer}, version)"]
    lines = [f"{length}(len({value}))", *elements]
    if not nullable:
        return lines
    return [f"if {value} is None:", f"    {length}(-1)", "else:", *[f"    {line}" for line in lines]]


def by_version(versions: Versions, make: Callable[[int], list[str]]) -> list[tuple[Versions, list[str]]]:
    """The statements that make() gives for each version, runs of equal ones joined, highest version first."""
    runs: list[tuple[Versions, list[str]]] = []
    for version in reversed(list(versions)):
        lines = make(version)
        if runs and runs[-1][1] == lines:
            runs[-1] = (Versions(version, runs[-1][0].highest), lines)
        else:
            runs.append((Versions(version, version), lines))
    return runs


def branch(versions: Versions, runs: list[tuple[Versions, list[str]]]) -> list[str]:
    """The runs as an if-chain over the version, highest first."""
    lines: list[str] = []
    handled_from = versions.highest + 1
    for run, body in runs:
        if not body:
            continue
        if run.highest + 1 == handled_from:
            handled_from = run.lowest
            condition = "" if run.lowest == versions.lowest else f"version >= {run.lowest}"
        elif run.lowest == versions.lowest:
            condition = f"version <= {run.highest}"
        elif run.lowest == run.highest:
            condition = f"version == {run.lowest}"
        else:
            condition = f"{run.lowest} <= version <= {run.highest}"
        if not condition and not lines:
            return list(body)
        if not condition and len(body) == 2 and body[0].startswith("if "):
            lines += [f"el{body[0]}", body[1]]
            continue
        word = "if" if not lines else "elif" if condition else "else"
        lines += [f"{word} {condition}:" if condition else "else:", *[f"    {line}" for line in body]]
    return lines


def is_inline(item: Field, version: int) -> bool:
    return version in item.versions and (item.tagged is None or version not in item.tagged)


class ClassWriter:
    """Writes one class."""

    def __init__(self, schema: Schema, struct: Struct) -> None:
        assert struct.versions is not None
        self.schema = schema
        self.struct = struct
        self.versions: Versions = struct.versions
        self.tagged = sorted((item for item in struct.fields if item.tag is not None), key=lambda item: item.tag or 0)

    def flexible(self) -> tuple[bool, str]:
        """Whether any version is flexible, and the condition for it (empty: all are)."""
        first = self.schema.flexible_from
        if first is None or first > self.versions.highest:
            return False, ""
        return True, "" if first <= self.versions.lowest else f"version >= {first}"

    def write(self) -> list[str]:
        lines = [f"class {self.struct.name}(Message):", *self.constants(), ""]
        parts = [self.init(), self.decode(), self.encode()]
        if self.needs_is_default():
            parts.append(self.is_default())
        for part in parts:
            lines += [*part, ""]
        return lines[:-1]

    def constants(self) -> list[str]:
        lines = []
        if self.struct is self.schema.top:
            key, versions, flexible = self.schema.key, self.schema.versions, self.schema.flexible_from
            if key is not None:
                lines.append(f"    API_KEY: ClassVar[int] = {key}")
            lines.append(f"    LOWEST_VERSION: ClassVar[int] = {versions.lowest}")
            lines.append(f"    HIGHEST_VERSION: ClassVar[int] = {versions.highest}")
            first = versions.highest + 1 if flexible is None else flexible
            lines.append(f"    FIRST_FLEXIBLE_VERSION: ClassVar[int] = {first}")
        names = [f'"{item.name}"' for item in self.struct.fields]
        after = ",)" if len(names) == 1 else ")"
        return lines + wrap("FIELDS: ClassVar[tuple[str, ...]] = (", names, after, "    ")

    def init(self) -> list[str]:
        parameters = ["self", *[parameter(item) for item in self.struct.fields]]
        parameters.append("unknown_tags: UnknownTags | None = None")
        lines = wrap("def __init__(", parameters, ") -> None:", "    ")
        lines += [assignment(item) for item in self.struct.fields]
        return [*lines, "        self.unknown_tags: UnknownTags | None = unknown_tags"]

    def decode(self) -> list[str]:
        name = self.struct.name
        body: list[str] = []
        if self.struct is self.schema.top:
            body = self.check_version("DecodeError")
        for item in self.struct.fields:
            body += self.decode_field(item)
        body += self.decode_tags()
        arguments = [*[item.local for item in self.struct.fields], "unknown_tags" if self.flexible()[0] else ""]
        body += [line[8:] for line in wrap(f"return {name}(", [a for a in arguments if a], ")", "        ")]
        head = ["    @staticmethod", f"    def decode(reader: Reader, version: int) -> {name}:"]
        return head + [f"        {line}" for line in body]

    def check_version(self, error: str) -> list[str]:
        low, high = self.schema.versions.lowest, self.schema.versions.highest
        condition = f"version != {low}" if low == high else f"version < {low} or version > {high}"
        return [f"if {condition}:", f'    raise {error}(no_such_version("{self.struct.name}", version))']

    def decode_field(self, item: Field) -> list[str]:
        read = self.hoisted(item, lambda version: read_value(self.schema, item, version))
        runs = by_version(self.versions, lambda version: read(version) if is_inline(item, version) else [])
        lines = branch(self.versions, runs)
        declaration = f"{item.local}: {item.python_type}"
        if item.struct is not None and item.is_array and item.nullable is None:
            return [f"{declaration} = []", *[line for line in lines if line.strip() != f"{item.local} = []"]]
        if not all(body for _, body in runs):
            return [f"{declaration} = {default_value(item)}", *lines]
        simple = len(runs) == 1 and not (item.struct is not None and item.is_array)
        return lines if simple else [declaration, *lines]

    def hoisted(self, item: Field, make: Callable[[int], list[str]]) -> Callable[[int], list[str]]:
        """Where only the length of an array depends on the version, what follows the length is written once."""
        inline = [version for version in self.versions if is_inline(item, version)]
        if not item.is_array or len({tuple(make(version)[1:]) for version in inline}) != 1:
            return make
        versions = Versions(inline[0], inline[-1])
        lines = branch(versions, by_version(versions, lambda version: make(version)[:1])) + make(inline[0])[1:]
        return lambda version: lines

    def decode_tags(self) -> list[str]:
        any_flexible, condition = self.flexible()
        if not any_flexible:
            return []
        if not self.tagged:
            if not condition:
                return ["unknown_tags = reader.unknown_tags()"]
            declaration = "unknown_tags: UnknownTags | None = None"
            return [declaration, f"if {condition}:", "    unknown_tags = reader.unknown_tags()"]
        loop = ["for _ in range(reader.tag_count()):", "    tag = reader.uvarint()", "    end = reader.tag_end()"]
        for index, item in enumerate(self.tagged):
            assert item.tagged is not None
            low = max(self.versions.lowest, self.schema.flexible_from or 0)
            since = f" and version >= {item.tagged.lowest}" if item.tagged.lowest > low else ""
            loop.append(f"    {'elif' if index else 'if'} tag == {item.tag}{since}:")
            loop += [f"        {line}" for line in read_value(self.schema, item, item.tagged.highest)]
        loop += ["    else:", "        unknown_tags = reader.unknown_tag(unknown_tags, tag, end)"]
        loop += ["    reader.check_tag_end(end)"]
        if condition:
            loop = [f"if {condition}:", *[f"    {line}" for line in loop]]
        return ["unknown_tags: UnknownTags | None = None", *loop]

    def encode(self) -> list[str]:
        body: list[str] = []
        if self.struct is self.schema.top:
            body = self.check_version("EncodeError")
        for item in self.struct.fields:
            body += self.encode_field(item)
        body += self.encode_tags()
        return ["    def encode(self, writer: Writer, version: int) -> None:", *[f"        {line}" for line in body]]

    def encode_field(self, item: Field) -> list[str]:
        write = self.hoisted(item, lambda version: write_value(self.schema, item, version))

        def statements(version: int) -> list[str]:
            if is_inline(item, version):
                return write(version)
            if item.ignorable or version in item.versions:
                return []
            return [f"if {differs_from_default(item)}:", f'    raise cannot_send("{item.name}", version)']

        return merge_conditions(branch(self.versions, by_version(self.versions, statements)))

    def encode_tags(self) -> list[str]:
        any_flexible, condition = self.flexible()
        refuse = 'raise cannot_send("unknown_tags", version)'
        if not any_flexible:
            return ["if self.unknown_tags is not None:", f"    {refuse}"]
        lines = [line for item in self.tagged for line in self.encode_tagged(item)]
        if self.tagged:
            lines = ["tags: UnknownTags = []", *lines, "writer.tags(tags, self.unknown_tags)"]
        else:
            lines = ["writer.unknown_tags(self.unknown_tags)"]
        if not condition:
            return lines
        lines = [f"if {condition}:", *[f"    {line}" for line in lines]]
        return [*lines, "elif self.unknown_tags is not None:", f"    {refuse}"]

    def encode_tagged(self, item: Field) -> list[str]:
        assert item.tagged is not None
        low = max(self.versions.lowest, self.schema.flexible_from or 0)
        test = differs_from_default(item)
        if item.tagged.lowest > low:
            test = f"version >= {item.tagged.lowest} and " + (f"({test})" if " or " in test else test)
        part = write_value(self.schema, item, item.tagged.highest, "part")
        if item.is_optional and item.default_is_null and part[0].endswith(" is None:"):
            # The test above says that it is not null.
            part = [line[4:] for line in part[part.index("else:") + 1 :]]
        body = ["part = Writer()", *part, f"tags.append(({item.tag}, part.to_bytes()))"]
        return [f"if {test}:", *[f"    {line}" for line in body]]

    def needs_is_default(self) -> bool:
        users = [item for struct in self.schema.structs.values() for item in struct.fields]
        return any(item.struct is self.struct and not item.is_array and not item.default_is_null for item in users)

    def is_default(self) -> list[str]:
        lines = ["    def is_default(self) -> bool:"]
        for item in self.struct.fields:
            lines += [f"        if {differs_from_default(item)}:", "            return False"]
        return [*lines, "        return self.unknown_tags is None"]


def merge_conditions(lines: list[str]) -> list[str]:
    """`if a:` with nothing in it but `if b:` becomes `if a and b:`."""
    if len(lines) == 3 and lines[1].startswith("    if "):
        inner = lines[1].strip()[3:-1]
        inner = f"({inner})" if " or " in inner else inner
        return [f"{lines[0][:-1]} and {inner}:", lines[2][4:]]
    return lines


def title(schema: Schema) -> str:
    low, high = schema.versions.lowest, schema.versions.highest
    name = re.sub(r"(?<=[a-z])(Request|Response)$", lambda match: " " + match[1].lower(), schema.name)
    return f"{name}, version {low}" if low == high else f"{name}, versions {low} to {high}"


def module_text(source: str, subject: str, schemas: list[Schema], tail: list[str], more_imports: list[str]) -> str:
    names = [name for schema in schemas for name in schema.structs]
    doubles = {name for name in names if names.count(name) > 1}
    if doubles:
        raise SchemaError(f"{source}: more than one struct is called {', '.join(sorted(doubles))}")
    classes: list[str] = []
    for schema in schemas:
        for struct in schema.structs.values():
            bad = [item.name for item in struct.fields if keyword.iskeyword(item.name) or not item.name.isidentifier()]
            if bad:
                raise SchemaError(f"{source}: {bad} cannot be a name in Python")
            classes += [*ClassWriter(schema, struct).write(), "", ""]
    body = "\n".join(classes + tail).rstrip() + "\n"

    def used(candidates: list[str]) -> list[str]:
        return [name for name in candidates if re.search(rf"\b{name}\b", body)]

    primitives = [
        *["NOT_GIVEN", "ZERO_UUID", "DecodeError", "EncodeError", "Message", "Reader", "UnknownTags", "Writer"],
        *["cannot_send", "no_such_version"],
    ]
    imports = wrap("from moldau.protocol.primitives import (", used(primitives), ")", "")
    if len(imports) == 1:
        imports = [imports[0].replace("(", "").replace(")", "")]
    if used(["Records"]):
        imports.append("from moldau.protocol.records_data import Records")
    imports += more_imports
    head = [f'"""{subject} {GENERATED}', "", f"Written by tools/generate_messages.py from {source}.", '"""', ""]
    typing = f"from typing import {', '.join(used(['ClassVar', 'Final']))}"
    return "\n".join([*head, "from __future__ import annotations", "", typing, "", *imports, "", "", body])


def table(name: str, schemas: list[Schema]) -> list[str]:
    rows = [f"    {schema.key}: {schema.name}," for schema in sorted(schemas, key=lambda schema: schema.key or 0)]
    return [f"{name}: Final[dict[int, type[Message]]] = {{", *rows, "}", ""]


def stored_tail(stem: str, schemas: list[Schema]) -> tuple[list[str], list[str]]:
    """The tables and functions for a file of stored records, and the import they need."""
    words = {schema.word for schema in schemas}
    subject = stem.removesuffix("_records")
    if words == {"record"}:
        name = f"{subject.upper()}_RECORDS"
        functions = [
            "",
            f"def encode_{subject}_record(record: Message, version: int) -> bytes:",
            "    return encode_record(record, version)",
            "",
            "",
            f"def decode_{subject}_record(data: bytes) -> Message:",
            f"    return decode_record({name}, data)",
        ]
        return table(name, schemas) + functions, ["decode_record", "encode_record"]
    if words == {"key", "value"}:
        keys, values = f"{subject.upper()}_KEYS", f"{subject.upper()}_VALUES"
        functions = [
            "",
            f"def encode_{subject}_key(key: Message) -> bytes:",
            "    return encode_key(key)",
            "",
            "",
            f"def decode_{subject}_key(data: bytes) -> Message:",
            f"    return decode_key({keys}, data)",
            "",
            "",
            f"def encode_{subject}_value(value: Message, version: int) -> bytes:",
            "    return encode_value(value, version)",
            "",
            "",
            f"def decode_{subject}_value(record_type: int, data: bytes) -> Message:",
            f"    return decode_value({values}, record_type, data)",
        ]
        tables = table(keys, [schema for schema in schemas if schema.word == "key"])
        tables += table(values, [schema for schema in schemas if schema.word == "value"])
        return tables + functions, ["decode_key", "decode_value", "encode_key", "encode_value"]
    return [], []


@dataclass(frozen=True)
class Api:
    """The first line of an api's file: `api 22 InitProducerId, on broker, unstable 6`."""

    key: int
    name: str
    listeners: tuple[str, ...]
    unstable: int | None
    request: Schema

    @property
    def constant(self) -> str:
        return snake_case(self.name).upper()


def parse_api(source: Path, request: Schema) -> Api:
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("api "):
            subject, *clauses = [part.strip() for part in line.split(",")]
            unstable = [int(clause.split()[1]) for clause in clauses if clause.startswith("unstable ")]
            listeners = tuple(clause.removeprefix("on ") for clause in clauses if not clause.startswith("unstable "))
            _, key, name = subject.split()
            return Api(int(key), name, listeners, unstable[0] if unstable else None, request)
    raise SchemaError(f"{source} does not start with an api line")


def api_table_text(apis: list[Api]) -> str:
    lines = [
        f'"""Every api: its key as a constant, and a row with its versions and listeners {GENERATED}',
        "",
        "Written by tools/generate_messages.py from schemas/messages. A row: key, name, lowest and highest version,",
        "first flexible version, highest stable version, on broker listeners, on controller listeners.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        *[f"{api.constant}: Final = {api.key}" for api in apis],
        "",
        "ROWS: Final[tuple[tuple[int, str, int, int, int, int, bool, bool], ...]] = (",
    ]
    for api in apis:
        versions = api.request.versions
        flexible = versions.highest + 1 if api.request.flexible_from is None else api.request.flexible_from
        stable = versions.highest if api.unstable is None else api.unstable - 1
        numbers = f"{versions.lowest}, {versions.highest}, {flexible}, {stable}"
        flags = f"{'broker' in api.listeners}, {'controller' in api.listeners}"
        lines.append(f'    ({api.constant}, "{api.name}", {numbers}, {flags}),')
    return "\n".join([*lines, ")", ""])


def error_fields_text(responses: dict[str, Schema], apis: list[Api]) -> str:
    """Where error codes are, so that whoever counts them need not look at every field of every response."""
    lines = [
        f'"""Where the error codes of each response are {GENERATED}',
        "",
        "Written by tools/generate_messages.py from schemas/messages. A row: api key, the lowest and highest version,",
        "and the way from the response to its error codes: names of arrays or structs, then that of the field.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "ROWS: Final[tuple[tuple[int, int, int, str], ...]] = (",
    ]
    for api in apis:
        schema = responses[api.name]
        for versions, path in error_paths(schema.top, schema.versions):
            lines.append(f'    ({api.key}, {versions.lowest}, {versions.highest}, "{path}"),')
    return "\n".join([*lines, ")", ""])


def error_paths(struct: Struct, within: Versions) -> list[tuple[Versions, str]]:
    found: list[tuple[Versions, str]] = []
    for item in struct.fields:
        versions = Versions(max(within.lowest, item.versions.lowest), min(within.highest, item.versions.highest))
        if versions.lowest > versions.highest:
            continue
        if item.name in ("error_code", "partition_error_code"):
            found.append((versions, item.name))
        elif item.struct is not None:
            found += [(inner, f"{item.name}.{path}") for inner, path in error_paths(item.struct, versions)]
    return found


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def generate() -> dict[Path, str]:
    """Every generated file with its text."""
    files: dict[Path, str] = {}
    apis: list[Api] = []
    responses: dict[str, Schema] = {}
    for source in sorted((SCHEMAS / "messages").glob("*.txt")):
        schemas = parse_file(source)
        place = source.relative_to(ROOT).as_posix()
        if source.name[0].isdigit():
            apis.append(parse_api(source, schemas[0]))
            responses[apis[-1].name] = schemas[1]
            for schema in schemas:
                path = PACKAGE / "messages" / f"{snake_case(schema.name)}.py"
                files[path] = module_text(place, title(schema), [schema], [], [])
        else:
            path = PACKAGE / "messages" / f"{source.stem.replace('-', '_')}.py"
            subject = "; ".join(title(schema) for schema in schemas)
            files[path] = module_text(place, subject, schemas, [], [])
    files[PACKAGE / "api_table.py"] = api_table_text(apis)
    files[PACKAGE / "error_fields.py"] = error_fields_text(responses, apis)
    for source in sorted((SCHEMAS / "stored").glob("*.txt")):
        schemas = parse_file(source)
        place = source.relative_to(ROOT).as_posix()
        tail, imports = stored_tail(source.stem, schemas)
        framing = [f"from moldau.protocol.stored.framing import {', '.join(imports)}"] if imports else []
        subject = f"Stored records: {source.stem.replace('_', ' ')}"
        files[PACKAGE / "stored" / f"{source.stem}.py"] = module_text(place, subject, schemas, tail, framing)
    return files


def is_generated(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip().endswith(GENERATED)


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__)
        return 2
    files = generate()
    present = {path for directory in ("messages", "stored") for path in (PACKAGE / directory).glob("*.py")}
    stale = sorted(path for path in files if not path.exists() or path.read_text(encoding="utf-8") != files[path])
    orphans = sorted(path for path in present - files.keys() if is_generated(path))
    if check:
        for path in stale + orphans:
            print(f"stale: {path.relative_to(ROOT)}; run python tools/generate_messages.py")
        return 1 if stale or orphans else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in orphans:
        path.unlink()
    print(f"{len(files)} files, {len(stale)} written, {len(orphans)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
