"""A load in a process of its own, to be killed: goes on until then, or with "once" until everything is loaded.

Its tasks run in the same process, so that it starts in a moment; tests of Spark run `moldau load` itself.
"""

from __future__ import annotations

import json
import sys

from moldau.lake.changelog import ChangelogLoad
from moldau.lake.load import Load, LoadSettings
from moldau.lake.tasks import run_here


def main() -> None:
    given = json.loads(sys.argv[1])
    settings = LoadSettings(
        given["options"],
        given["path"],
        given["format"],
        tuple(given["partition_by"]),
        round_offsets_max=given["round_offsets_max"],
        task_offsets_max=given["task_offsets_max"],
    )
    kind = ChangelogLoad if given["upsert"] else Load
    with kind(settings, run_here) as load:
        rounds = load.run_once() if given["once"] else load.run_continuously(0.01, lambda: False)
        for done in rounds:
            print(f"version {done.version}, {done.rows} rows", flush=True)


if __name__ == "__main__":
    main()
