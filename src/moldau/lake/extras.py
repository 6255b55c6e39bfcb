"""Imports the packages of the extra `moldau[spark]` when they are first used, and says what to install when absent."""

from __future__ import annotations

import importlib
from typing import Any

from moldau.lake.errors import LakeError

# The packages behind import names that differ from them.
_NEEDED_FOR = {
    "pyspark": "Spark runs the tasks",
    "pyarrow": "files are written with Arrow",
    "deltalake": "Delta tables are written with it",
    "pyiceberg": "Iceberg tables are written with it",
    "sqlalchemy": "the catalog of Iceberg tables is kept with it",
}


def need(module: str) -> Any:
    """The module, imported; LakeError with the command that installs it where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        reason = _NEEDED_FOR.get(package, "this part of Moldau uses it")
        raise LakeError(f"The package {package} is missing ({reason}): pip install 'moldau[spark]'.") from error
