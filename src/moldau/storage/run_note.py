"""What is remembered of the run that writes to a log directory: was it ended by a kill only, or by the machine's end?

What a process wrote is in the page cache and outlives the process. A broker that was killed, on a machine that went on,
has lost nothing that it acknowledged; its next run may say so when it registers, as after a clean stop, and stays
eligible to lead (KIP-966). `Disk.remember` sees to it that nothing is recalled once that is not sure any more.
"""

from __future__ import annotations

import logging

from moldau.storage.disk import Disk

logger = logging.getLogger("moldau.storage")

UNKNOWN_BROKER_EPOCH = -1


def note_run(disk: Disk, directory: str, broker_epoch: int) -> None:
    """This process writes there from now on, as the broker of this epoch; -1: it has lost something, or may have."""
    if broker_epoch == UNKNOWN_BROKER_EPOCH:
        disk.forget(directory)
    else:
        disk.remember(directory, str(broker_epoch))


def epoch_of_killed_run(disk: Disk, directory: str) -> int:
    """The broker epoch of the last run, if everything it wrote must still be there; else -1."""
    text = disk.recall(directory)
    try:
        return int(text) if text else UNKNOWN_BROKER_EPOCH
    except ValueError:
        logger.warning("%s: what is remembered of the last run is no epoch: %s", directory, text)
        return UNKNOWN_BROKER_EPOCH


def forget_run(disk: Disk, directory: str) -> None:
    """The run ends well, or its disk has failed: what the page cache shows need not be what was written then."""
    disk.forget(directory)
