"""Prints what the compiled environment needs: everything that building, running and testing Moldau requires."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
names = [
    *project["build-system"]["requires"],
    *project["dependency-groups"]["compile"],
    *project["project"]["dependencies"],
]
for extra in sys.argv[1:] or ["dev", "interop"]:
    names += project["project"]["optional-dependencies"][extra]
print(" ".join(sorted({name.replace(" ", "") for name in names})))
