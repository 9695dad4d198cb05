"""A kind of file, and what its makers share."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

N = 400
RNG = np.random.default_rng(7)
NOISE = np.round(RNG.normal(size=(N, 3)).cumsum(axis=0) % 7 + RNG.normal(size=(N, 3)), 4)
BLOCKS = (np.arange(N) // 50) % 2
STAGES = np.array(["W", "N1", "N2", "R"])[(np.arange(N) // 40) % 4]
SAMPLES = np.arange(N)


@dataclass(frozen=True)
class Row:
    """One kind of file."""

    kind: str
    name: str
    make: Any
    want: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = ".csv"

    @property
    def id(self):
        asked = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}: {self.name}" + (f" [{asked}]" if asked else "")


def text(header, *columns, mark=",", above="", below="", end="\n"):
    """A table with these columns."""
    cells = [[*map(str, column)] for column in columns]
    lines = [mark.join(row) for row in zip(*cells, strict=True)]
    top = mark.join(header) + end if header else ""
    return above + top + below + end.join(lines) + end


def timed(label, clock, **more):
    """A table of a clock and three noisy channels."""
    return text([label, "a", "b", "c"], clock, *NOISE[: len(clock)].T, **more)


def exact(values):
    """Numbers as they read back."""
    return [repr(float(value)) for value in values]


def ms(rate, samples=SAMPLES):
    """A clock rounded to milliseconds."""
    return np.floor(samples * 1000 / rate + 0.2).astype(int)


def dated(seconds, written="%Y-%m-%d %H:%M:%S", first="2021-03-05T10:00:00"):
    """Date-times."""
    moments = (np.datetime64(first, "ms") + (np.asarray(seconds) * 1000).astype("timedelta64[ms]")).tolist()
    return [moment.strftime(written) for moment in moments]


HOLED = np.r_[0:250, 290:440]
ABC = ["a", "b", "c"]
E = "\n"


def labelled(name, column, clock=True):
    """Noise with a column that may be a label."""
    times = [SAMPLES] if clock else []
    return text([*(["time (s)"] if clock else []), *ABC, name], *times, *NOISE.T, column)


def stored(values=NOISE, dims=("time", "channel"), clock=None, attrs=None, channel=None, **clock_attrs):
    """What writes a NetCDF 3 file."""

    def write(path):
        coords = {} if clock is None else {dims[0]: (dims[0], clock, clock_attrs)}
        if channel is not None:
            coords["channel"] = channel
        xr.Dataset({"volts": (dims, values, attrs or {})}, coords=coords).to_netcdf(path, engine="scipy")

    return write


def series(**variables):
    """What writes one variable a channel."""

    def write(path):
        xr.Dataset({name: ("time", values) for name, values in variables.items()}).to_netcdf(path, engine="scipy")

    return write


def saved(values):
    """What writes a NumPy array."""
    return lambda path: np.save(path, values)


SECONDS = SAMPLES / 100
NC, NPY = {"suffix": ".nc"}, {"suffix": ".npy"}
