"""A result written to and read from an S3 server on loopback, against a local disk in the same run."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.store import start, write_group, writing
from manifold_observer.pipeline.stores.address import Place, place
from manifold_observer.pipeline.stores.objects import sizes

# The server has a process of its own, as a real one has a machine.
_SERVER = """
import collections, sys
sys.path.insert(0, sys.argv[1])
from store_server import s3_server
server = s3_server()
print(server.address, flush=True)
for _ in sys.stdin:
    print(len(server.app.seen), flush=True)
    server.app.seen.clear()
"""
_FEATURES, _SMALL = 16, 20


def write(out: Place, frames: xr.Dataset, small: xr.Dataset) -> None:
    """Write a result of frames and of small arrays, as a run does."""
    with writing(out) as folder:
        start(folder, {"settings": "{}"})
        write_group(folder, "frames", frames)
        write_group(folder, "embedding", small)


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def measure(n_frames: int, repeats: int = 3) -> dict[str, Any]:
    """Times of writing and reading, medians; requests and objects of one result."""
    rng = np.random.default_rng(0)
    frames = xr.Dataset({"frames": (("frame", "feature"), rng.normal(size=(n_frames, _FEATURES)))}).chunk(frame=32768)
    small = xr.Dataset({f"value_{k}": ("mode", rng.normal(size=_SMALL)) for k in range(30)})
    with tempfile.TemporaryDirectory() as name, Server() as server:
        os.environ["MANIFOLD_OBSERVER_CACHE"] = f"{name}/cache"
        found: dict[str, list[float]] = {}
        for number in range(repeats):
            places = {"disk": Path(name, f"{number}.zarr"), "bucket": place(f"s3://results/{number}.zarr")}
            for kind, out in places.items():
                found.setdefault(f"write {kind}", []).append(seconds(lambda out=out: write(out, frames, small)))
                requests = server.requests()
                found.setdefault(f"read {kind}", []).append(seconds(lambda out=out: mo.load(out).load()))
        n_objects = len(sizes(place("s3://results/0.zarr")))
    told = {name: round(statistics.median(values), 2) for name, values in found.items()}
    ratios = {f"{what} ratio": round(told[f"{what} bucket"] / told[f"{what} disk"], 1) for what in ("write", "read")}
    return {"n_frames": n_frames, **told, **ratios, "objects": n_objects, "requests of a write": requests}


class Server:
    """An S3 server in a process of its own, for a block."""

    def __enter__(self) -> Server:
        command = [sys.executable, "-c", _SERVER, str(Path(__file__).parents[1])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = self._line()
        os.environ |= {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret"}
        urllib.request.urlopen(urllib.request.Request(f"{address}/results", method="PUT")).close()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def requests(self) -> int:
        """Requests since this was asked last."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        """What the process says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    words = parser.parse_args()
    print(json.dumps(measure(words.frames, words.repeats)))
