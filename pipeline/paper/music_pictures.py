"""Pictures of the music experiment: where notes lie in the coordinates, and how the coordinates follow the score."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ..plot.style import COLOURS, MARKERS
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
    n = piece.sizes["frame"]
    piece = _in_deviations(piece.isel(frame=piece["frame_instrument"].values >= 0))
    figure = new_figure(
        f"{_headline(piece)}: where notes and instruments lie in the coordinates",
        f"Sound: {piece.attrs['sound']}. The {piece.sizes['frame']} of n = {n} frames of 23 ms in which something "
        "sounds; coordinates in their own deviations.",
    )
    axes = grid(figure, 2, 3, width_ratios=[1.1, 1, 1])
    notes = _notes(piece)
    for row, name in zip(axes, _ROWS, strict=True):
        _scatter_three(figure, row[0], piece, name, notes)
        _scatter(row[1], piece, name, "frame_note", notes)
        _scatter(row[2], piece, name, "frame_instrument", _instruments(piece))
    _legend(figure, axes[0, 1], axes[0, 2])
    return figure


def draw_time(piece: xr.Dataset) -> Figure:
    """Score, waveform and spectrogram above the coordinates over the same time; observer left, diffusion maps right."""
    n = piece.sizes["frame"]
    piece = _in_deviations(piece, piece["frame_instrument"].values >= 0)
    rapid = " The rapid run has a grey ground." if piece["frame_rapid"].any() else ""
    figure = new_figure(
        f"{_headline(piece)}: how the coordinates follow the score",
        f"Sound: {piece.attrs['sound']}. n = {n} frames of 23 ms; coordinates in deviations of the frames in which "
        f"something sounds.{rapid}",
    )
    panels = figure.add_gridspec(4, 2, height_ratios=[0.45, 1.0, 1.35, 1.35])
    score = _panel(figure, panels[:2, 0])
    wave, spectrogram = (_panel(figure, panels[k, 1], score) for k in (0, 1))
    for above in (score, wave, spectrogram):
        above.tick_params(labelbottom=False)
    _draw_score(score, piece)
    wave.fill_between(piece["wave_time"], piece["wave_low"], piece["wave_high"], color="#404040", linewidth=0)
    label(wave, "Waveform", y="full\nscale")
    _draw_spectrogram(spectrogram, piece)
    followed = []
    for column, (name, title) in enumerate(_ROWS.items()):
        first, second = (_panel(figure, panels[row, column], score) for row in (2, 3))
        first.tick_params(labelbottom=False)
        _follow(first, piece, name, 1, "frame_instrument", _instruments(piece))
        label(first, f"{title}: first coordinate, by instrument", y=_axis(name, 1))
        _follow(second, piece, name, 2, "frame_note", _notes(piece))
        label(second, f"{title}: second coordinate, by note", "time (s)", _axis(name, 2))
        followed += [first, second]
    _shade_run([score, wave, *followed], piece)
    score.set_xlim(0, float(piece["wave_time"][-1]))
    _legend(figure, followed[1], followed[0])
    return figure


def _panel(figure: Figure, place: Any, beside: Axes | None = None) -> Axes:
    """Axes in the style, over the same time as others."""
    axes = figure.add_subplot(place, sharex=beside)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _in_deviations(piece: xr.Dataset, sounding: Any = slice(None)) -> xr.Dataset:
    """Coordinates of both methods on one scale: no mean, and unit deviation over the frames that sound."""
    scaled = {}
    for name in _ROWS:
        own = piece[name].values[sounding]
        scaled[name] = (piece[name].dims, (piece[name].values - own.mean(axis=0)) / own.std(axis=0))
    return piece.assign(scaled)


def _legend(figure: Figure, notes: Axes, instruments: Axes) -> None:
    """One legend: every note and every instrument once, in marks that can be seen."""
    found: dict[str, Any] = {}
    for axes in (notes, instruments):
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault("no note" if text == "silence" else text, handle)
    legend_of(figure, list(found.values()), list(found), len(found))
    legend: Any = figure.legends[0]
    for handle in legend.legend_handles:
        handle.set(sizes=[60], alpha=1)


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
    """Which piece."""
    return str(piece.attrs["piece"]).replace("_", " ").capitalize()


def _axis(name: str, mode: int) -> str:
    """Name of a coordinate in deviations, which have no unit."""
    return rf"${_SYMBOLS[name]}_{mode}$ (deviations)"


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
            size = 18 if value >= 0 else 24
            style = {"label": name, "color": colour, "marker": marker, "s": size, "linewidths": 0}
            yield own, style | {"rasterized": True}


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
    label(axes, f"{_ROWS[name]}, by note", *(f"${_SYMBOLS[name]}_{mode}$" for mode in (1, 2)))
    axes.set_zlabel(f"${_SYMBOLS[name]}_3$")
    axes.tick_params(labelsize=8)
    axes.locator_params(nbins=4)
    axes.set_box_aspect(None, zoom=1.0)


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
    label(axes, "Score, by instrument", y="note")


def _shade_run(axes: Iterable[Axes], piece: xr.Dataset) -> None:
    """A grey ground under the rapid run, in all panels."""
    times = piece["time"].values[piece["frame_rapid"].values.astype(bool)]
    for panel in axes if len(times) else ():
        panel.axvspan(times[0], times[-1], color=_RUN, linewidth=0, zorder=-1)


def _draw_spectrogram(axes: Axes, piece: xr.Dataset) -> None:
    """Spectrogram with its colour bar outside, so that all panels are as wide."""
    level = piece["spectrogram"].transpose("frequency", "column")
    mesh = axes.pcolormesh(piece["column_time"], piece["frequency"] / 1000, level, rasterized=True)
    label(axes, "Spectrogram", y="kHz")
    bar = axes.figure.colorbar(mesh, cax=axes.inset_axes((1.01, 0.0, 0.012, 1.0)))
    bar.set_label("dB")


def _follow(
    axes: Axes, piece: xr.Dataset, name: str, mode: int, variable: str, looks: dict[int, tuple[str, str, str]]
) -> None:
    """One coordinate over time, by class."""
    axes.plot(piece["time"], piece[name][:, mode - 1], color=_LINE, linewidth=0.4, zorder=0)
    for own, style in _groups(piece, variable, looks):
        axes.scatter(piece["time"].values[own], piece[name].values[own, mode - 1], **style | {"s": 9})
    # Silence may lie so far from all notes that these would be one line.
    sounding = piece[name].values[piece["frame_instrument"].values >= 0, mode - 1]
    margin = 0.08 * np.ptp(sounding)
    axes.set_ylim(sounding.min() - margin, sounding.max() + margin)
