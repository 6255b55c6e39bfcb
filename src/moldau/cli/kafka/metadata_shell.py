"""`kafka-metadata-shell`: looks into a snapshot or a metadata log as into a tree of directories and files.

Shows what the metadata of a cluster says, without a cluster. The commands are those of Kafka's shell: cat, cd, exit,
find, help, history, ls, man, pwd, tree. The tree is our own reading of the image; its nodes have the names of Kafka's.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.options import VALUE, Option, OptionParser, check_help_or_version, check_required

if TYPE_CHECKING:
    from moldau.cli.kafka.metadata_tree import Node

PARSER = OptionParser(
    [
        Option(
            "snapshot",
            "REQUIRED: a snapshot, a segment of the metadata log, the directory of both, or a log directory.",
            VALUE,
            described_as="path",
        )
    ]
)

HELP = {
    "cat": "Show the contents of metadata nodes.",
    "cd": "Set the current working directory.",
    "exit": "Exit the metadata shell.",
    "find": "Search for nodes in the directory hierarchy.",
    "help": "Display this help message.",
    "history": "Print command history.",
    "ls": "List metadata nodes.",
    "man": "Show the help text for a specific command.",
    "pwd": "Print the current working directory.",
    "tree": "Show the contents of metadata nodes in a tree structure.",
}


def main(arguments: list[str]) -> int:
    options = PARSER.parse(arguments)
    check_help_or_version(options, "Look into the metadata of a cluster as into a tree of files.")
    check_required(options, "snapshot")
    path = options.text("snapshot") or ""
    from moldau.cli.kafka.files import ReadOnlyDisk
    from moldau.cli.kafka.metadata_tree import build_tree
    from moldau.server.offline_metadata import read_any

    try:
        metadata = read_any(ReadOnlyDisk(), path)
    except OSError as error:
        sys.stderr.write(f"Unexpected error: {path}: {error.strerror}\n")
        return 1
    for text in [*metadata.snapshot_damage, *metadata.damage, *metadata.problems]:
        sys.stderr.write(f"WARNING: {text}\n")
    shell = Shell(build_tree(metadata))
    if options.plain:
        return shell.run(options.plain)
    return _prompt(shell)


def _prompt(shell: Shell) -> int:
    interactive = sys.stdin.isatty()
    if interactive:
        print("[ Kafka Metadata Shell ]")
    while not shell.ended:
        if interactive:
            sys.stdout.write(">> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            break
        try:
            words = shlex.split(line)
        except ValueError as error:
            print(f"{error}")
            continue
        shell.history.append(line.rstrip("\n"))
        if words:
            shell.run(words)
    return 0


class Shell:
    """Where one is in the tree, and what was asked before."""

    def __init__(self, top: Node) -> None:
        self.top = top
        self.where: list[str] = []
        self.history: list[str] = []
        self.ended = False

    def run(self, words: list[str]) -> int:
        name, rest = words[0], words[1:]
        if name not in HELP:
            print(f"No such command: {name}. Use help to see all commands.")
            return 1
        result = getattr(self, f"_{name}")(rest)
        return 0 if result is None else int(result)

    # Paths

    def _absolute(self, path: str) -> list[str]:
        parts = [] if path.startswith("/") else list(self.where)
        for part in path.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        return parts

    def _find_nodes(self, path: str) -> list[tuple[str, Node]]:
        """The nodes that a path with * and ? names."""
        import fnmatch

        found: list[tuple[list[str], Node]] = [([], self.top)]
        for part in self._absolute(path):
            found = [
                ([*names, child], node.children[child])
                for names, node in found
                if node.children is not None
                for child in sorted(node.children)
                if fnmatch.fnmatchcase(child, part)
            ]
        return [("/" + "/".join(names), node) for names, node in found]

    def _named(self, command: str, paths: list[str]) -> tuple[list[tuple[str, Node]], int]:
        found: list[tuple[str, Node]] = []
        code = 0
        for path in paths or [""]:
            nodes = self._find_nodes(path)
            if not nodes:
                print(f"{command}: {path}: no such file or directory.")
                code = 1
            found += nodes
        return found, code

    # Commands

    def _ls(self, paths: list[str]) -> int:
        found, code = self._named("ls", paths)
        for path, node in found:
            if node.children is None:
                print(path)
                continue
            if len(found) > 1:
                print(f"{path}:")
            print("  ".join(sorted(node.children)))
        return code

    def _cat(self, paths: list[str]) -> int:
        found, code = self._named("cat", paths)
        for path, node in found:
            if node.children is not None:
                print(f"cat: {path} is a directory")
                code = 1
            else:
                print(node.text)
        return code

    def _cd(self, paths: list[str]) -> int:
        found, code = self._named("cd", paths[:1] or ["/"])
        for path, node in found[:1]:
            if node.children is None:
                print(f"cd: {path}: not a directory.")
                return 1
            self.where = [part for part in path.split("/") if part]
        return code

    def _pwd(self, paths: list[str]) -> None:
        print("/" + "/".join(self.where))

    def _find(self, paths: list[str]) -> int:
        found, code = self._named("find", paths)
        for path, node in found:
            for each, _ in node.walk(path.rstrip("/")):
                print(each or "/")
        return code

    def _tree(self, paths: list[str]) -> int:
        found, code = self._named("tree", paths)
        for _, node in found:
            for line in node.tree_lines():
                print(line)
        return code

    def _help(self, words: list[str]) -> None:
        print("Welcome to the Kafka metadata shell.\n")
        for name, text in HELP.items():
            print(f"  {name:<8} {text}")

    def _man(self, words: list[str]) -> int:
        if not words or words[0] not in HELP:
            print("man: which command? help lists them.")
            return 1
        print(f"{words[0]}: {HELP[words[0]]}")
        return 0

    def _history(self, words: list[str]) -> None:
        for number, line in enumerate(self.history):
            print(f"# {number}  {line}")

    def _exit(self, words: list[str]) -> None:
        self.ended = True
