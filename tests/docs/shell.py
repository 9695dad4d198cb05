"""Blocks of pages, and a bash that hands every ``manifold-observer`` to this process instead of starting Python."""

import os
import re
import subprocess
from contextlib import chdir
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# It sends its folder and words, and waits for what became of them.
_SHIM = """#!/bin/bash
printf '%s\\0' "$PWD" "$@" > "$CALLS/asked"
read -r code < "$CALLS/answered"
cat "$CALLS/out"; cat "$CALLS/err" >&2
exit "$code"
"""


class Block(NamedTuple):
    """A fenced block of a page: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def blocks_of(path, languages=("bash", "python", "toml")):
    """All fenced blocks of a page in these languages, in their order."""
    text = path.read_text(encoding="utf-8")
    found = [Block(one[1], one[2], text.count("\n", 0, one.start()) + 2) for one in _FENCE.finditer(text)]
    return [block for block in found if block.language in languages]


class Shell:
    """Runs scripts with bash in a folder; ``call(*words)`` gives exit code, output and errors of the command."""

    def __init__(self, folder, call):
        self.call, self.calls = call, folder / ".calls"
        (self.calls / "bin").mkdir(parents=True)
        (self.calls / "bin" / "manifold-observer").write_text(_SHIM)
        (self.calls / "bin" / "manifold-observer").chmod(0o755)
        for name in ("asked", "answered"):
            os.mkfifo(self.calls / name)

    def run(self, script):
        """Exit code, and all that the script printed. The first command that fails ends it."""
        told = f'set -euo pipefail\ntrap \'printf "" > "$CALLS/asked"\' EXIT\n{script}\n'
        path = f"{self.calls / 'bin'}{os.pathsep}{os.environ['PATH']}"
        with subprocess.Popen(
            ["bash", "-c", told],
            env=os.environ | {"PATH": path, "CALLS": str(self.calls)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as bash:
            while words := (self.calls / "asked").read_bytes():
                self._answer(*words.decode().split("\0")[:-1])
            said = bash.stdout.read()
        return bash.returncode, said

    def _answer(self, folder, *words):
        """Run one call here, and let the shell go on."""
        with chdir(folder):
            code, out, err = self.call(*words)
        (self.calls / "out").write_text(out)
        (self.calls / "err").write_text(err)
        (self.calls / "answered").write_text(f"{code}\n")
