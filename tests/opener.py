"""Opens files in forked children of a process that has imported everything, and says what each cost.

Run as a script: a path a line on standard input, one JSON object a line on standard output.
"""

import hashlib
import json
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path

import h5netcdf  # noqa: F401 - imported before the first fork, as are the others
import h5py  # noqa: F401
import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock

SPARE_BYTES = 2**30
HARD_SECONDS = 30


def opened(path):
    """Open a recording, read its clock and its first samples."""
    warnings.simplefilter("ignore")
    recording = mo.open_recording(path)
    clock(recording)
    values = np.ascontiguousarray(recording[:8].values, np.float64)
    return {"shape": recording.shape, "digest": hashlib.sha256(values.tobytes()).hexdigest()}


def attempt(path):
    """What opening a file gives, with the peak of memory that it adds and its seconds of work."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with Path("/proc/self/statm").open() as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + SPARE_BYTES,) * 2)
    try:
        answer = opened(path)
    except BaseException as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    used = resource.getrusage(resource.RUSAGE_SELF)
    answer["mebibytes"] = (used.ru_maxrss - before) / 1024
    return {**answer, "cpu": used.ru_utime + used.ru_stime, "wall": time.monotonic() - began}


def attempt_apart(path):
    """The same in a child, which is killed where it hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(HARD_SECONDS)
        os.write(writer, json.dumps(attempt(path)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if answer else {"error": f"status {status}", "text": ""}


if __name__ == "__main__":
    xr.backends.list_engines()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(attempt_apart(Path(line.rstrip("\n")))), flush=True)
