"""How results are called where the user names none: after the recording, in the current folder."""

from __future__ import annotations

from pathlib import Path

from ..stores.address import Place


def named_after(recording: Place, suffix: str) -> Path:
    """A name for what a command writes about a recording.

    Parameters
    ----------
    recording
        The recording, wherever it is.
    suffix
        Of what is written; a recording that ends so gets ``.state`` before it, as it must not be its own result.

    Examples
    --------
    >>> [str(named_after(Path(name), ".zarr")) for name in ("data/emg.txt", "night.zarr")]
    ['emg.zarr', 'night.state.zarr']
    """
    own = recording.suffix.lower() == suffix
    return Path(f"{recording.stem or 'recording'}{'.state' if own else ''}{suffix}")


def result_and_recordings(paths: tuple[Place, ...]) -> tuple[tuple[Place, ...], Place]:
    """The recordings among some places, and the result: the last one, or one that is named after a lone recording.

    Examples
    --------
    >>> tuple(str(result_and_recordings(paths)[1]) for paths in ((Path("a.wav"),), (Path("a.wav"), Path("b.zarr"))))
    ('a.zarr', 'b.zarr')
    """
    if len(paths) == 1:
        return paths, named_after(paths[0], ".zarr")
    return paths[:-1], paths[-1]
