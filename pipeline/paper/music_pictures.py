"""Pictures of the music experiment: where notes lie in the coordinates, and how the coordinates follow the score."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ..plot.colours import COLOURS, MARKERS
from .pictures import grid, label, legend_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS = {"observer": "Observer", "diffusion_maps": "Diffusion maps"}
_SYMBOLS = {"observer": r"\hat\psi", "diffusion_maps": r"\psi"}
_NAMES = ("C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯", "B")
_SILENT, _LINE, _RUN = "#A0A0A0", "#C8C8C8", "#EDEDED"
# The notes have the first colours; these are no note's, unless there are six or more.
_INSTRUMENTS = ("#000000", "#56B4E9")


def draw(joined: xr.Dataset) -> dict[str, Figure]:
    """Scatter plots and a picture over time for the first realisation of every kind of piece."""
    figures = {}
    for kind in joined.attrs["kinds"].split():
        piece = _of_kind(joined, kind)
        figures[f"{kind}-scatter"] = draw_scatter(piece)
        figures[f"{kind}-time"] = draw_time(piece)
    return figures


def draw_scatter(piece: xr.Dataset) -> Figure:
    """Coordinates by note (three, then two of them) and by instrument; observer above, diffusion maps below.

    Silence is left out: it may lie so far from all notes that these would be one dot.
    """
    piece = piece.isel(frame=piece["frame_instrument"].values >= 0)
    figure = new_figure(11, 7.5)
    axes = grid(figure, 2, 3, width_ratios=[1.25, 1, 1])
    notes = _notes(piece)
    for row, name in zip(axes, _ROWS, strict=True):
        _scatter_three(figure, row[0], piece, name, notes)
        _scatter(row[1], piece, name, "frame_note", notes)
        _scatter(row[2], piece, name, "frame_instrument", _instruments(piece))
    handles, labels = axes[0, 1].get_legend_handles_labels()
    more, names = axes[0, 2].get_legend_handles_labels()
    legend_of(figure, [*handles, *more], [*labels, *names], len(labels) + len(names))
    legend: Any = figure.legends[0]
    for handle in legend.legend_handles:
        handle.set(sizes=[36], alpha=1)
    figure.suptitle(_headline(piece), fontsize=11, x=0.01, ha="left")
    return figure


def draw_time(piece: xr.Dataset) -> Figure:
    """Score, waveform, spectrogram and coordinates above each other, over the same time."""
    figure = new_figure(11, 12.5)
    axes = grid(figure, 7, 1, sharex=True, gridspec_kw={"height_ratios": [1.3, 0.7, 1.2, 1.2, 1.2, 1, 1]})[:, 0]
    _draw_score(axes[0], piece)
    axes[1].fill_between(piece["wave_time"], piece["wave_low"], piece["wave_high"], color="#404040", linewidth=0)
    label(axes[1], "Waveform", y="pressure\n(full scale 1)")
    _draw_spectrogram(axes[2], piece)
    for (name, title), second, first in zip(_ROWS.items(), axes[3:5], axes[5:7], strict=True):
        _follow(second, piece, name, 2, "frame_note", _notes(piece))
        label(second, f"{title}: second coordinate, by note", y=_axis(name, 2))
        _follow(first, piece, name, 1, "frame_instrument", _instruments(piece))
        label(first, f"{title}: first coordinate, by instrument", y=_axis(name, 1))
    _shade_run(axes, piece)
    axes[-1].set_xlabel("time (s)")
    axes[-1].set_xlim(0, float(piece["wave_time"][-1]))
    figure.suptitle(_headline(piece), fontsize=11, x=0.01, ha="left")
    figure.align_ylabels()
    return figure


def note_name(pitch: int) -> str:
    """Name of a MIDI number.

    Examples
    --------
    >>> note_name(60), note_name(69)
    ('C4', 'A4')
    """
    return f"{_NAMES[pitch % 12]}{pitch // 12 - 1}"


def _of_kind(joined: xr.Dataset, kind: str) -> xr.Dataset:
    """The variables of one kind of piece, under their own names."""
    own = joined[[name for name in joined.variables if str(name).startswith(f"{kind}_")]]
    names = {str(name): str(name).removeprefix(f"{kind}_") for name in {*own.variables, *own.dims}}
    attrs = {name: joined.attrs[f"{kind}_{name}"] for name in ("sound", "instruments")}
    return own.rename({old: new for old, new in names.items() if old != new}).assign_attrs(piece=kind, **attrs)


def _headline(piece: xr.Dataset) -> str:
    """Which piece, and where its sound is from."""
    return f"{piece.attrs['piece'].replace('_', ' ').capitalize()} ({piece.attrs['sound']})"


def _axis(name: str, mode: int) -> str:
    """Name of a coordinate, which has no unit."""
    return rf"${_SYMBOLS[name]}_{mode}$ (no unit)"


def _notes(piece: xr.Dataset) -> dict[int, tuple[str, str, str]]:
    """Name, colour and marker of every note, and of none."""
    found = [int(pitch) for pitch in np.unique(piece["frame_note"]) if pitch >= 0]
    looks = {
        pitch: (note_name(pitch), COLOURS[k % len(COLOURS)], MARKERS[(k + k // len(COLOURS)) % len(MARKERS)])
        for k, pitch in enumerate(found)
    }
    return {-1: ("no note", _SILENT, ".")} | looks


def _instruments(piece: xr.Dataset) -> dict[int, tuple[str, str, str]]:
    """Name, colour and marker of every instrument, and of silence."""
    names = piece.attrs["instruments"].split(", ")
    colours = [*_INSTRUMENTS, *COLOURS[2:]]
    looks = {k: (name, colours[k % len(colours)], MARKERS[(k + 4) % len(MARKERS)]) for k, name in enumerate(names)}
    return {-1: ("silence", _SILENT, ".")} | looks


def _groups(piece: xr.Dataset, variable: str, looks: dict[int, tuple[str, str, str]]) -> Any:
    """Frames of every class that occurs, with how they look."""
    for value, (name, colour, marker) in looks.items():
        own = piece[variable].values == value
        if own.any():
            size = 14 if value >= 0 else 24
            yield own, {"label": name, "color": colour, "marker": marker, "s": size, "linewidths": 0}


def _scatter(axes: Axes, piece: xr.Dataset, name: str, variable: str, looks: dict[int, tuple[str, str, str]]) -> None:
    """The first two coordinates, by class."""
    for own, style in _groups(piece, variable, looks):
        axes.scatter(*piece[name].values[own, :2].T, alpha=0.7, **style)
    what = "note" if variable == "frame_note" else "instrument"
    label(axes, f"{_ROWS[name]}, by {what}", _axis(name, 1), _axis(name, 2))


def _scatter_three(
    figure: Figure, place: Axes, piece: xr.Dataset, name: str, looks: dict[int, tuple[str, str, str]]
) -> None:
    """The first three coordinates by note, in place of flat axes."""
    place.remove()
    axes: Any = figure.add_subplot(place.get_subplotspec(), projection="3d")
    for own, style in _groups(piece, "frame_note", looks):
        axes.scatter(*piece[name].values[own, :3].T, alpha=0.7, **style)
    label(axes, f"{_ROWS[name]}, by note", _axis(name, 1), _axis(name, 2))
    axes.set_zlabel(_axis(name, 3), labelpad=8)
    axes.tick_params(labelsize=7)
    axes.locator_params(nbins=4)
    axes.set_box_aspect(None, zoom=0.85)


def _draw_score(axes: Axes, piece: xr.Dataset) -> None:
    """Notes as bars, coloured by instrument."""
    looks = _instruments(piece)
    for prefix in ("", "chord_") if "chord_pitch" in piece else ("",):
        onset, offset, pitch, player = (
            piece[prefix + name].values for name in ("onset", "offset", "pitch", "instrument")
        )
        for number in np.unique(player):
            own, (name, colour, _) = player == number, looks[int(number)]
            axes.barh(pitch[own], (offset - onset)[own], left=onset[own], height=0.8, color=colour, label=name)
    pitches = np.concatenate([piece[name].values for name in ("pitch", "chord_pitch") if name in piece])
    ticks = np.unique(pitches) if np.ptp(pitches) <= 14 else np.arange(pitches.min() // 12 + 1, 11) * 12
    axes.set_yticks(ticks[ticks <= pitches.max()])
    axes.yaxis.set_major_formatter(lambda pitch, _: note_name(round(pitch)))
    label(axes, "Score" + (", the rapid run shaded" if piece["frame_rapid"].any() else ""), y="note")
    _legend_beside(axes)


def _shade_run(axes: Iterable[Axes], piece: xr.Dataset) -> None:
    """A grey ground under the rapid run, in all panels."""
    times = piece["time"].values[piece["frame_rapid"].values.astype(bool)]
    for panel in axes if len(times) else ():
        panel.axvspan(times[0], times[-1], color=_RUN, linewidth=0, zorder=-1)


def _draw_spectrogram(axes: Axes, piece: xr.Dataset) -> None:
    """Spectrogram with its colour bar outside, so that all panels are as wide."""
    level = piece["spectrogram"].transpose("frequency", "column")
    mesh = axes.pcolormesh(piece["column_time"], piece["frequency"] / 1000, level, rasterized=True)
    label(axes, "Spectrogram", y="frequency (kHz)")
    bar = axes.figure.colorbar(mesh, cax=axes.inset_axes((1.01, 0.0, 0.012, 1.0)))
    bar.set_label("level (dB)")


def _follow(
    axes: Axes, piece: xr.Dataset, name: str, mode: int, variable: str, looks: dict[int, tuple[str, str, str]]
) -> None:
    """One coordinate over time, by class."""
    axes.plot(piece["time"], piece[name][:, mode - 1], color=_LINE, linewidth=0.4, zorder=0)
    for own, style in _groups(piece, variable, looks):
        axes.scatter(piece["time"].values[own], piece[name].values[own, mode - 1], **style | {"s": 7})
    # Silence may lie so far from all notes that these would be one line.
    sounding = piece[name].values[piece["frame_instrument"].values >= 0, mode - 1]
    margin = 0.08 * np.ptp(sounding)
    axes.set_ylim(sounding.min() - margin, sounding.max() + margin)
    _legend_beside(axes)


def _legend_beside(axes: Axes) -> None:
    """A legend to the right of the data."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8, handletextpad=0.3)
