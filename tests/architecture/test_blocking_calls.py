"""While a node serves, nothing below the line waits for the medium: who may ask for a `BlockingDisk`, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.architecture.source_tree import BELOW, Module, modules

# Functions that ask for `Disk.blocking()`. Jobs on threads are handed one and need not ask.
MAY_BLOCK = {
    "moldau.storage.recovery": "a start, before anybody is served",
    "moldau.storage.compaction.compact": "a worker process",
    "moldau.storage.txn_index.TransactionIndex.reset": "recovery builds it anew",
    "moldau.storage.txn_index.TransactionIndex.save": "a stop puts what was built anew in place",
    "moldau.storage.segment.Segment.save_rebuilt": "a stop puts what was built anew in place",
    "moldau.storage.producer_snapshots.ProducerSnapshots.remove": "recovery drops what it cannot use",
    "moldau.storage.segment.Segment.sync": "recovery, and the last flush of a stop",
    "moldau.storage.segment.Segment.sync_indexes": "recovery, in the node or in a worker",
    "moldau.storage.flush_job.flush_now": "the last flush of a stop",
    "moldau.storage.flush_job._sync_directory_now": "the last flush of a stop",
    "moldau.storage.log.Log.close": "a stop ends the truncations that wait",
    "moldau.storage.log.Log._finish": "a start that finds a snapshot newer than the metadata log, tools, tests",
    "moldau.node.metadata_log.MetadataLog.write_first_quorum_state": "a start",
    "moldau.node.metadata_log.MetadataLog.load_snapshots": "a start",
    "moldau.node.metadata_log.open_metadata_log": "a start",
    "moldau.storage.directory_checkpoints.DirectoryCheckpoints.write_now": "a start, a stop",
    "moldau.storage.future_logs.FutureLogs.take_over_at_start": "a start that finds a move half done",
    "moldau.storage.run_history.RunHistory._take_clean_shutdown_file": "a start",
    "moldau.storage.log_checkpoints.LogCheckpoints.write_high_watermarks": "a stop, else it does not ask",
    "moldau.storage.log_manager.LogManager._remove_cleaned": "a stop",
    "moldau.storage.run_history.RunHistory.write_clean_shutdown_file": "a stop",
}

# Functions that block because they call one of these, by the names that nothing else has.
BLOCKING_FUNCTIONS = {"flush_now", "write_now", "take_over_at_start"}
MAY_CALL = {
    "moldau.storage.log.Log.flush": "tools and tests; nothing in a node",
    "moldau.storage.log.Log.close": "a stop",
    "moldau.storage.log_checkpoints.LogCheckpoints.finish_directory": "a start",
    "moldau.storage.log_checkpoints.LogCheckpoints.write_now": "a stop",
    "moldau.storage.log_checkpoints.LogCheckpoints.write_all_of": "a start that finds a move half done",
    "moldau.storage.log_manager.LogManager.shutdown": "a stop",
    "moldau.node.replicas.Replicas._open_log": "a start that finds a move half done",
}

# Modules that know a disk as both at once.
MAY_KNOW_BOTH = {
    "moldau.storage.disk": "defines it",
}


@cache
def calls(module: Module) -> tuple[tuple[str, ast.Call, str], ...]:
    """Every call, with the function it is in and the name that is called."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call, str]]:
        for child in ast.iter_child_nodes(node):
            place = inside
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                place = f"{inside}.{child.name}"
            if isinstance(child, ast.Call):
                called = child.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                yield inside, child, name
            yield from walk(child, place)

    return tuple(walk(module.tree, module.name))


def is_in(place: str, allowed: dict[str, str]) -> bool:
    return any(place == name or place.startswith(f"{name}.") for name in allowed)


def below() -> list[Module]:
    return [module for module in modules() if module.layer in BELOW]


def test_only_starts_stops_and_workers_ask_for_a_disk_that_blocks() -> None:
    wrong = [
        f"{module.where(call)}: {place} asks for a blocking disk"
        for module in below()
        for place, call, name in calls(module)
        if name == "blocking" and not is_in(place, MAY_BLOCK)
    ]
    assert not wrong, "use a `…_later` method of Disk, or a job for `do_later`:\n" + "\n".join(wrong)


def test_only_starts_and_stops_call_what_blocks() -> None:
    wrong = [
        f"{module.where(call)}: {place} calls {name}"
        for module in below()
        for place, call, name in calls(module)
        if name in BLOCKING_FUNCTIONS and not is_in(place, MAY_CALL)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_metadata_log_knows_a_disk_that_does_both() -> None:
    wrong = [
        f"{module.where(node)}: {module.name} imports {name}"
        for module in below()
        for node, name in module.imports()
        if name.endswith("disk.WholeDisk") and module.name not in MAY_KNOW_BOTH
    ]
    assert not wrong, "\n".join(wrong)


def test_nobody_is_on_the_lists_without_need() -> None:
    """A list that is longer than it must be hides the next one who should not be there."""
    asking = {place for module in below() for place, _, name in calls(module) if name == "blocking"}
    calling = {place for module in below() for place, _, name in calls(module) if name in BLOCKING_FUNCTIONS}
    unused = [entry for entry in MAY_BLOCK if not any(is_in(place, {entry: ""}) for place in asking)]
    unused += [entry for entry in MAY_CALL if not any(is_in(place, {entry: ""}) for place in calling)]
    importing = {module.name for module in below() for _, name in module.imports() if name.endswith("disk.WholeDisk")}
    unused += [entry for entry in MAY_KNOW_BOTH if entry not in importing and entry != "moldau.storage.disk"]
    assert not unused, unused
