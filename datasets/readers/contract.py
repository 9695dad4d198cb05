"""What every reader of users' files hands out, and how it refuses.

Throughout the readers: a *recording* is the variable ``recording`` with dims
``(time, channel)``; a *frame* of an audio file is one sample of every channel (libsndfile's
word); a *reader* is the short name that begins each error, such as "audio".
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

CHUNK_BYTES = 8_000_000
# Up to so many channels any number of samples is believed, and up to so many times the number of samples.
_FEW_CHANNELS, _FEW_SAMPLES = 64, 4
_MOST_CHANNELS = 2**18


class Lies(NamedTuple):
    """Where an array lies in one file as it would in memory: bytes before it, and its numbers.

    Arrays that have a method ``lies`` say it, anew for each read; None where they have to be decoded. Their attribute
    ``scale``, a power of two, is what the numbers are multiplied by.
    """

    path: str
    offset: int
    dtype: np.dtype[Any]


def refusal(reader: str, path: str, must: str, got: str, remedy: str) -> ValueError:
    """Build the error of a file that cannot be read as it is.

    Parameters
    ----------
    reader
        Short name of the reader.
    path
        The file.
    must
        What the file has to do or be; follows "must".
    got
        What was found instead; follows "got".
    remedy
        What the user can do: a sentence, without its final stop.

    Returns
    -------
    The error, to be raised by the caller.

    Examples
    --------
    >>> refusal("audio", "a.wav", "be a sound file", "an HTML page", "Download it again")
    ValueError('audio: a.wav must be a sound file; got an HTML page. Download it again.')
    """
    return ValueError(f"{reader}: {path} must {must}; got {got}. {remedy}.")


def local_file(reader: str, source: Any) -> str:
    """Check that a source is a local file, and return its absolute path.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    source
        What the user gave to ``xr.open_dataset``.

    Returns
    -------
    The path, absolute so that worker processes find it whatever their folder.

    Examples
    --------
    >>> local_file("audio", "missing.wav")
    Traceback (most recent call last):
    FileNotFoundError: audio: missing.wav must be a local file, but does not exist. Check the path.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"{reader}: the source must be the path of a file; got {type(source).__name__}.")
    if not os.path.exists(source):
        raise FileNotFoundError(
            f"{reader}: {os.fspath(source)} must be a local file, but does not exist. Check the path."
        )
    if os.path.isdir(source):
        raise refusal(reader, os.fspath(source), "be a file", "a directory", "Give one file in it")
    # A pipe would be waited for, and a device never ends.
    if not os.path.isfile(source):
        raise refusal(
            reader, os.fspath(source), "be a file", "a FIFO, a socket or a device", "Copy it into a file first"
        )
    return os.path.abspath(source)


def check_channels(reader: str, path: str, n_channels: int) -> None:
    """Refuse more channels than any recording has.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    path
        The file.
    n_channels
        How many it has.

    Examples
    --------
    >>> check_channels("npy", "a.npy", 10**7)
    Traceback (most recent call last):
    ValueError: npy: a.npy must have at most 262144 channels; got 10000000. Transpose it if it is (channel, time).
    """
    if n_channels > _MOST_CHANNELS:
        must = f"have at most {_MOST_CHANNELS} channels"
        raise refusal(reader, path, must, str(n_channels), "Transpose it if it is (channel, time)")


def check_upright(reader: str, path: str, n_samples: int, n_channels: int, remedy: str) -> None:
    """Refuse an array without names that has far more channels than samples: it was stored the other way round.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    path
        The file.
    n_samples, n_channels
        Its shape, as it would be read.
    remedy
        What the user can do where it is (channel, time).

    Examples
    --------
    >>> check_upright("npy", "a.npy", 64, 200_000, "give channels_first=True")
    Traceback (most recent call last):
    ValueError: npy: a.npy must be (time, channel); got 64 samples of 200000 channels, which looks like (channel, ...
    """
    if n_channels > _FEW_CHANNELS and n_channels > _FEW_SAMPLES * n_samples:
        got = f"{n_samples} samples of {n_channels} channels, which looks like (channel, time): {remedy}"
        raise refusal(reader, path, "be (time, channel)", got, "If it is right, give channels_first=False")


def has_suffix(source: Any, suffixes: Iterable[str]) -> bool:
    """Tell from its name alone whether a reader is meant for a source.

    Wrong content must reach the reader too, so that its error can say what the file is.

    Parameters
    ----------
    source
        What the user gave to ``xr.open_dataset``.
    suffixes
        Lower-case endings with their dot.

    Returns
    -------
    True for a path that ends so, in any case.

    Examples
    --------
    >>> has_suffix("night.WAV", {".wav"}), has_suffix(b"RIFF", {".wav"})
    (True, False)
    """
    if not isinstance(source, str | os.PathLike):
        return False
    return os.path.splitext(os.fspath(source))[1].lower() in suffixes


def check_sampling_rate(reader: str, sampling_rate: float | None) -> None:
    """Refuse a sampling rate that is not a positive number; None stands for no clock.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    sampling_rate
        Samples per second, in Hz.

    Examples
    --------
    >>> check_sampling_rate("npy", 0)
    Traceback (most recent call last):
    ValueError: npy: sampling_rate must be a positive number of Hz; got 0. For example sampling_rate=250.0.
    """
    if sampling_rate is not None and not (sampling_rate > 0 and math.isfinite(sampling_rate)):
        raise ValueError(
            f"{reader}: sampling_rate must be a positive number of Hz; got {sampling_rate!r}. "
            "For example sampling_rate=250.0."
        )


def lazy_variable(
    array: BackendArray, dtype: np.dtype[Any], shape: tuple[int, int], *, n_bytes: int = CHUNK_BYTES
) -> xr.Variable:
    """Wrap the array of a reader as a variable that is read when asked, in blocks of about 8 MB.

    Parameters
    ----------
    array
        Reads a range of a file.
    dtype
        Its dtype.
    shape
        Its shape, (samples, channels).
    n_bytes
        Bytes of a block, about.

    Returns
    -------
    The variable with dims (time, channel), with ``preferred_chunks`` in its encoding.

    Examples
    --------
    >>> from manifold_observer.datasets.readers.npy import NpyArray
    >>> array = NpyArray("not read yet.npy", np.dtype("f8"), (3_000_000, 4), channels_first=False)
    >>> lazy_variable(array, array.dtype, array.shape).encoding
    {'preferred_chunks': {'time': 250000, 'channel': 4}}
    """
    rows = max(1, n_bytes // (dtype.itemsize * shape[1]))
    chunks = {"time": min(rows, shape[0]), "channel": shape[1]}
    return xr.Variable(("time", "channel"), indexing.LazilyIndexedArray(array), encoding={"preferred_chunks": chunks})


def recording_dataset(
    recording: xr.Variable,
    *,
    path: str,
    channels: Sequence[str],
    time: xr.Coordinates | None,
    sampling_rate: float | None,
    units: str,
    long_name: str,
    drop_variables: str | Iterable[str] | None = None,
) -> xr.Dataset:
    """Label a recording.

    Parameters
    ----------
    recording
        Values with dims (time, channel).
    path
        The file they come from.
    channels
        Label of each channel.
    time
        The coordinate ``time`` in s; None when the file has no clock.
    sampling_rate
        Samples per second, in Hz; None when it is unknown.
    units
        Unit of the values.
    long_name
        What the values are.
    drop_variables
        Names to leave out, as in ``xr.open_dataset``.

    Returns
    -------
    The variable ``recording`` with its coordinates and attributes.

    Examples
    --------
    >>> values = xr.Variable(("time", "channel"), np.zeros((3, 2)))
    >>> dataset = recording_dataset(
    ...     values, path="a.npy", channels=["x", "y"], time=None, sampling_rate=None,
    ...     units="mV", long_name="recording",
    ... )
    >>> dataset["recording"].attrs
    {'units': 'mV', 'long_name': 'recording', 'source': 'a.npy'}
    """
    rate = {} if sampling_rate is None else {"sampling_rate": float(sampling_rate)}
    recording.attrs = {
        **rate,
        "units": units,
        "long_name": long_name,
        "source": os.path.basename(path),
    }
    dataset = xr.Dataset({"recording": recording}, coords=time)
    dataset = dataset.assign_coords(channel=("channel", np.array(channels), {"long_name": "channel"}))
    return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")
