"""Pictures show the values, break at gaps, and take names and units from attributes."""

import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.plot.colours import colouring
from manifold_observer.pipeline.plot.series import series
from manifold_observer.pipeline.plot.style import COLOURS, STYLE, styled
from manifold_observer.tasks.plot import clouds

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def waves(n=200, m=3, dated=False, gap=True):
    time = np.arange(n) * 0.5
    time[n // 2 :] += 20 * gap
    clock = np.datetime64("2020-03-09", "ns") + (time * 1e9).astype("timedelta64[ns]") if dated else time
    values = np.sin(np.arange(n)[:, None] / (3 + np.arange(m)))
    attrs = {} if dated else {"units": "s"}
    coords = {"time": ("frame", clock, attrs), "note": ("frame", np.where(np.arange(n) % 40 < 25, "a$b$", "c"))}
    array = xr.DataArray(values, dims=("frame", "mode"), coords=coords, name="state")
    return array.assign_attrs(units="mV", long_name="a very long name that goes on and on until it has to be wrapped")


@pytest.mark.parametrize("dated", [False, True])
def test_states__are_the_values_broken_at_the_gap(dated):
    state = waves(dated=dated)
    drawn = mo.plot.states(xr.Dataset({"state": state, "state_std": 0 * state + 0.1}))
    assert len(drawn) == 3
    for k, axes in enumerate(drawn):
        (line,) = axes.lines
        y = np.asarray(line.get_ydata())
        assert np.flatnonzero(np.isnan(y)).tolist() == [100]
        np.testing.assert_array_equal(y[~np.isnan(y)], state[:, k])
        assert f"state {k + 1} (mV)" in axes.get_ylabel()
        (band,) = axes.collections
        bounds = np.concatenate([path.vertices for path in band.get_paths()])[:, 1]
        assert bounds.max() == pytest.approx(state[:, k].max() + 0.196)
    assert drawn[-1].get_xlabel() == ("time" if dated else "time (s)")


def test_states__long_lines_keep_the_extremes_and_the_gap():
    state = waves(5000, 1)[:, 0]
    (axes,) = mo.plot.states(state, most=300)
    y = np.asarray(axes.lines[0].get_ydata())
    assert len(y) < 320
    assert np.isnan(y).sum() == 1
    assert (np.nanmin(y), np.nanmax(y)) == (state.min(), state.max())
    assert "\n" in axes.get_ylabel()  # a long name is wrapped


def test_series__lazy_and_in_memory_are_the_same_for_any_chunk():
    state = waves(1000, 2)
    for chunk in (37, 1000):
        lazy = series(state.chunk(frame=chunk), 100)
        np.testing.assert_array_equal(lazy.values, series(state, 100).values)
    brute = series(state[:, 0], 100).values[:, 0]
    assert np.nanmax(brute) == state[:, 0].max()


def test_series__many_short_stretches_are_no_line():
    found = series(xr.DataArray(np.arange(1000.0), dims="frame", coords={"segment": ("frame", np.arange(1000))}), 50)
    assert np.isnan(found.values[2::3]).all()
    assert len(found.values) <= 75


def test_map2d__colours_by_time_text_numbers_and_arrays():
    state = waves()
    by_text = mo.plot.map2d(state, color="note")
    texts = [text.get_text() for text in by_text.get_legend().get_texts()]
    assert texts == [r"a\$b\$", "c"]
    offsets = np.concatenate([dots.get_offsets() for dots in by_text.collections])
    assert sorted(map(tuple, offsets)) == sorted(map(tuple, state.values[:, :2]))
    assert by_text.get_xlabel() == "state 1 (mV)"
    by_number = mo.plot.map2d(state, color=xr.DataArray(np.arange(200.0) / 7, dims="frame", name="speed"))
    np.testing.assert_array_equal(by_number.collections[0].get_array(), np.arange(200) / 7)
    by_time = mo.plot.map2d(waves(dated=True), modes=(2, 0))
    np.testing.assert_array_equal(by_time.collections[0].get_offsets(), state.values[:, [2, 0]])
    with pytest.raises(ValueError, match="color must be a coordinate along 'frame' \\('time', 'note'\\)"):
        mo.plot.map2d(state, color="nope")
    with pytest.raises(ValueError, match="one value for each of the 200 frames"):
        mo.plot.map2d(state, color=np.zeros(3))
    with pytest.raises(ValueError, match=r"modes must lie in 0 \.\. 2"):
        mo.plot.map2d(state, modes=(0, 3))


def test_map2d__density_counts_every_frame():
    axes = mo.plot.map2d(waves(5000), density=True)
    assert np.nansum(axes.collections[0].get_array()) == 5000


def test_map3d__has_all_dots():
    state = waves()
    axes = mo.plot.map3d(state, color="note")
    assert sum(len(dots._offsets3d[0]) for dots in axes.collections) == 200
    assert axes.get_zlabel() == "state 3 (mV)"


def test_spectrum__shows_values_gap_and_what_is_not_kept():
    embedding = xr.Dataset(
        {
            "eigenvalue": ("mode", [0.9, 0.8]),
            "residual": ("mode", [0.01, 0.02]),
            "spectrum": ("mode_found", [0.9, 0.8, 0.2, 0.1]),
        }
    )
    axes = mo.plot.spectrum(embedding)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [0.9, 0.8, 0.2, 0.1])
    assert axes.texts[0].get_text() == "gap 0.6"
    with pytest.raises(ValueError, match="needs an embedding"):
        mo.plot.spectrum(xr.Dataset())


def test_compare__is_in_deviations_on_one_scale():
    state = waves()
    drawn = mo.plot.compare({"observer": state, "PCA $x$": 5 * state + 3})
    first, second = (np.asarray(axes.lines[0].get_ydata()) for axes in drawn)
    np.testing.assert_allclose(first, second, atol=1e-12)
    assert np.nanstd(first) == pytest.approx(1.0)
    assert drawn[0].get_ylim() == drawn[1].get_ylim()


def test_residuals__mark_where_a_refit_is_due():
    due = np.zeros(100, bool)
    due[60:70] = True
    found = xr.Dataset(
        {
            "innovation_size": ("frame", np.arange(100.0)),
            "innovation_level": ("frame", np.ones(100)),
            "refit_due": ("frame", due),
        }
    )
    axes = mo.plot.residuals(found)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.arange(100))
    (ground,) = axes.patches
    assert (ground.get_x(), ground.get_width()) == (60, 9)


def test_report_figure__is_16_to_9_and_has_no_empty_panel():
    embedding = xr.Dataset({"eigenvalue": ("mode", [0.9, 0.8, 0.1])})
    tree = xr.DataTree.from_dict({"state": xr.Dataset({"state": waves()}), "embedding": embedding})
    drawn = mo.plot.report_figure(tree)
    width, height = drawn[0].figure.get_size_inches()
    assert width / height == pytest.approx(16 / 9)
    assert all(axes.has_data() for axes in drawn)


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (np.array(["b", "a", "b", ""], object), ("b", "a")),
        (np.array([True, False, True, True]), ("True", "False")),
        (np.array([0.0, 1.0, 0.0, np.nan]), ("0", "1")),
        (np.array([0.1, 0.2, 0.3, 0.4]), None),
    ],
)
def test_colouring__tells_names_from_quantities(values, classes):
    found = colouring(xr.DataArray(np.zeros(4), dims="frame"), values)
    assert found.classes == classes
    if classes:
        told = [classes[code] if code >= 0 else "" for code in found.values]
        plain = values.astype(int) if values.dtype.kind == "f" and not pd.isna(values).any() else values
        known = [str(value) if pd.notna(value) else "" for value in plain]
        assert [text.removesuffix(".0") for text in known] == told


def test_colours__differ_for_the_colour_blind():
    """Seen without red and green cones apart (Machado 2009, deuteranopia), any two still differ."""
    rgb = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in COLOURS]) / 255
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    seen = linear @ np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]).T
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=2) + 9 * np.eye(len(seen))
    assert apart.min() > 0.05


def test_sample__has_one_frame_of_every_stretch():
    at = clouds.spread_sample(1000, 10)
    assert (at // 100).tolist() == list(range(10))
    np.testing.assert_array_equal(at, clouds.spread_sample(1000, 10))


def test_plot__imports_matplotlib_only_when_it_draws():
    code = (
        "import sys, manifold_observer.pipeline as mo; mo.plot; assert 'matplotlib' not in sys.modules; "
        "mo.plot.states; assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "import xarray as xr\n"
        "try: mo.plot.states(xr.DataArray([1.0, 2.0], dims='frame'))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "plot: pictures need matplotlib; it was not found. Install it with pip install matplotlib."
    )


def test_styled__puts_back_its_own_settings_and_none_that_a_notebook_makes_with_the_first_picture():
    with matplotlib.rc_context({"interactive": False, "font.size": 7.0}):
        with styled():
            assert matplotlib.rcParams["font.size"] == STYLE["font.size"]
            matplotlib.rcParams["interactive"] = True
        assert matplotlib.rcParams["interactive"]
        assert matplotlib.rcParams["font.size"] == 7.0


def test_results__have_what_hvplot_asks_for():
    """Coordinates with plain names and types, dims of one name, so that ``result.hvplot`` needs no help."""
    state = waves(dated=True).to_dataset()
    table = state.to_dataframe().reset_index()
    assert {"frame", "mode", "time", "note", "state"} <= set(table.columns)
    assert all(isinstance(name, str) and name.isidentifier() for name in (*state.variables, *state.dims))
