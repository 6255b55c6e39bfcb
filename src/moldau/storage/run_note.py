"""A note in each log directory about the run that writes there: was it ended by a kill only, or by the machine's end?

What a process wrote is in the page cache and outlives the process. A broker that was killed, on a machine that went on,
has lost nothing that it acknowledged; its next run may say so when it registers, as after a clean stop, and stays
eligible to lead (KIP-966). Kafka has no such file and leaves it alone.
"""

from __future__ import annotations

import logging

from moldau.storage.disk import Disk

logger = logging.getLogger("moldau.storage")

RUN_NOTE_FILE = "moldau.run"
UNKNOWN_BROKER_EPOCH = -1


def write_run_note(disk: Disk, directory: str, broker_epoch: int) -> None:
    """Not synced: it is to be believed only while the machine that wrote it goes on."""
    machine_run = disk.machine_run_id()
    if machine_run:
        text = f"version=0\nmachine.run={machine_run}\nbroker.epoch={broker_epoch}\n"
        disk.write_file(f"{directory}/{RUN_NOTE_FILE}", text.encode("ascii"), sync=False)


def epoch_of_killed_run(disk: Disk, directory: str) -> int:
    """The broker epoch of the last run, if its machine has gone on ever since; else -1."""
    machine_run = disk.machine_run_id()
    try:
        text = disk.read_file(f"{directory}/{RUN_NOTE_FILE}").decode("ascii")
        values = dict(line.split("=", 1) for line in text.splitlines())
        if not machine_run or values["version"] != "0" or values["machine.run"] != machine_run:
            return UNKNOWN_BROKER_EPOCH
        return int(values["broker.epoch"])
    except FileNotFoundError:
        return UNKNOWN_BROKER_EPOCH
    except (ValueError, KeyError) as error:
        logger.warning("the damaged %s/%s is not believed: %s", directory, RUN_NOTE_FILE, error)
        return UNKNOWN_BROKER_EPOCH


def forget_run(disk: Disk, directory: str) -> None:
    """The run ends well, or its disk has failed: what the page cache shows need not be what was written then."""
    try:
        disk.remove(f"{directory}/{RUN_NOTE_FILE}")
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("%s/%s could not be removed: %s", directory, RUN_NOTE_FILE, error)
