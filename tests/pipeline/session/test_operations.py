"""What xarray offers works on whatever a public function returns: each result times each operation."""

import pickle

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from strategies import QUICK, share, smooth_motion

CLOCKS = ("dated gaps", "seconds", "dates", "gaps", "none")
RATE = 10.0
pytestmark = pytest.mark.filterwarnings("ignore")


def recording(clock, n=480):
    """Three channels with a label, lazily; with holes, three segments."""
    values = smooth_motion(np.random.default_rng(2), n, 3)
    made = xr.DataArray(values, dims=("time", "channel"), coords={"channel": ["a", "b", "c"]}, name="recording")
    ticks = np.arange(n) + (np.array([0, 400, 1700])[np.digitize(np.arange(n), [107, 330])] if "gaps" in clock else 0)
    if clock == "none":
        return made.chunk(time=300)
    times = ticks / RATE
    if "date" in clock:
        times = np.datetime64("2024-05-01T08:00", "ns") + (times * 1e9).astype("timedelta64[ns]")
    labels = {"time": times, "note": ("time", np.where(np.arange(n) % 200 < 100, "low", "high").astype(object))}
    return made.assign_coords(labels).chunk(time=300)


def results(clock, folder):
    """What public functions return for one clock, by name."""
    source = recording(clock)
    frames = mo.log_rms(source, frame=3)
    embedding = mo.embed(frames, 2)
    state = mo.observe(embedding, frames)
    found = {
        "recording": source,
        "identity": mo.identity(source),
        "stft": mo.stft(source, frame=8),
        "histogram": mo.histogram(source, frame=3, bins=4),
        "log_rms": frames,
        "concat": mo.concat([frames, frames]) if "date" not in clock else frames,
        "embed": embedding,
        "observe": state,
        "observe eagerly": mo.observe(embedding, frames.compute()),
        "observe as printed": mo.observe(embedding, frames, 0.5, gain="unit"),
        "kalman": mo.observe(embedding, frames, gain="kalman", rates=np.array([0.1, 0.2])),
        "smooth": mo.smooth(embedding, frames),
        "carry": state.carry,
        "extend": mo.extend(embedding, frames + 0.01),
        "calibrate": mo.calibrate(embedding),
        "reconstruct": mo.reconstruct(embedding, state),
        "innovations": mo.innovations(embedding, frames, state),
        "scores": mo.scores({"state": state.state}, frames.rename(feature="component")),
        "tune": mo.tune(frames).table,
    }
    found |= {f"baseline {name}": one for name, one in mo.baselines(embedding, frames).items()}
    return found | stored(clock, folder / "stored")


def stored(clock, folder):
    """Results that were stored, and opened again: all groups of a run, those of a stream, and the embedding."""
    folder.mkdir()
    whole = recording(clock).drop_vars("note", errors="ignore")
    for name, part in {"first": whole[:330], "second": whole[330:]}.items():
        part.to_dataset().chunk(time=-1).to_netcdf(folder / f"{name}.nc")
    config = mo.RunConfig(mo.FeatureConfig("log_rms", frame=3), embedding=mo.EmbedConfig(n_modes=2), smooth=True)
    tree = mo.run([folder / "first.nc"], folder / "out.zarr", config)
    mo.continue_run(folder / "out.zarr", [folder / "second.nc"], folder / "more")
    groups = {f"run {name}": node.to_dataset() for name, node in tree.children.items()}
    stream = {f"stream {name}": node.to_dataset() for name, node in mo.load(folder / "more").children.items()}
    return (
        groups
        | stream
        | {"read_embedding": mo.read_embedding(folder / "out.zarr"), "tree": tree, "corpus": mo.load(folder)}
    )


def same(found, expected):
    """Equal numbers, coordinates and dims, whatever the names of things that a format has no room for."""
    assert {node.path for node in found.subtree} == {node.path for node in expected.subtree}
    for other in expected.subtree:
        one, two = found[other.path].to_dataset(inherit=False), other.to_dataset(inherit=False)
        assert set(one.variables) == set(two.variables)
        for name in two.variables:
            xr.testing.assert_allclose(one[name].variable.compute(), two[name].variable.compute(), rtol=1e-12)
            assert set(two[name].attrs) - {"units", "calendar"} <= set(one[name].attrs)
        assert set(two.attrs) <= set(one.attrs)


def as_tree(result):
    if isinstance(result, xr.DataTree):
        return result
    data = result.to_dataset(name=result.name or "values") if isinstance(result, xr.DataArray) else result
    return xr.DataTree(data)


def to_netcdf(result, folder):
    as_tree(result).to_netcdf(folder / "a.nc", engine="h5netcdf")
    with xr.open_datatree(folder / "a.nc", engine="h5netcdf") as found:
        same(found.load(), as_tree(result))


def to_zarr(result, folder):
    result.to_zarr(folder / "a.zarr", consolidated=False) if isinstance(result, xr.DataTree) else as_tree(
        result
    ).to_dataset().to_zarr(folder / "a.zarr", consolidated=False)
    same(xr.open_datatree(folder / "a.zarr", engine="zarr", consolidated=False).load(), as_tree(result))


def pickled(result, folder):
    same(as_tree(pickle.loads(pickle.dumps(result))), as_tree(result))


def copied(result, folder):
    same(as_tree(result.copy(deep=True)), as_tree(result))


def shown(result, folder):
    assert repr(result)
    assert "<" in result._repr_html_()


def over_nodes(operate):
    """Do it to every part of a tree that has frames (or samples), or to the one thing."""

    def operation(result, folder):
        if isinstance(result, xr.DataTree):
            for node in result.subtree:
                if "frame" in node.dims:
                    operate(node.to_dataset(inherit=False))
        else:
            operate(result)

    return operation


def along(result):
    return next((dim for dim in ("frame", "time") if dim in result.dims), None)


def concatenated(result):
    if dim := along(result):
        parts = [result.isel({dim: slice(None, 5)}), result.isel({dim: slice(5, None)})]
        how = {"data_vars": "minimal"} if isinstance(result, xr.Dataset) else {}
        both = xr.concat(parts, dim, **how, coords="minimal", compat="override")
        assert both.sizes[dim] == result.sizes[dim]
        same(as_tree(both), as_tree(result))


def grouped(result):
    if "segment" in result.coords:
        found = result.groupby("segment").mean()
        assert found.sizes["segment"] == len(np.unique(result.segment))


def selected(result):
    if "time" in result.coords:
        time = np.asarray(result.time.values)
        found = result.sel(time=slice(time[2], time[7]))
        assert found.sizes[along(result)] == 6


def resampled(result):
    if "time" in result.coords and result.time.dtype.kind == "M":
        found = result.drop_vars("note", errors="ignore").resample(time="4s").mean()
        assert found.sizes["time"] > 2


def tabled(result):
    if isinstance(result, xr.DataArray):
        table = result.to_dataframe(name="values")
        assert len(table) == result.size
    elif dim := along(result):
        names = [name for name, one in result.data_vars.items() if dim in one.dims]
        assert len(result[names[:2]].to_dataframe()) > 0


def interpolated(result):
    if "time" not in result.coords:
        return
    time = result.time.values
    dim = along(result)
    names = [n for n, v in result.data_vars.items() if dim in v.dims] if isinstance(result, xr.Dataset) else None
    wanted = result if names is None else result[names]
    wanted = (wanted if dim == "time" else wanted.swap_dims({dim: "time"})).isel(time=slice(0, 20))
    found = wanted.interp(time=time[:3] + (time[1] - time[0]) / 2)
    assert found.sizes["time"] == 3


def chosen(result):
    if "segment" in result.coords:
        found = result.where(result.segment == result.segment[0], drop=True)
        assert found.sizes[along(result)] == int((result.segment == result.segment[0]).sum())


OPERATIONS = {
    "to_netcdf": to_netcdf,
    "to_zarr": to_zarr,
    "pickle": pickled,
    "copy": copied,
    "repr": shown,
    "concat": over_nodes(concatenated),
    "groupby": over_nodes(grouped),
    "sel": over_nodes(selected),
    "resample": over_nodes(resampled),
    "to_dataframe": over_nodes(tabled),
    "interp": over_nodes(interpolated),
    "where": over_nodes(chosen),
}


@pytest.mark.slow
@pytest.mark.parametrize("clock", share(CLOCKS, len(CLOCKS)))
def test_operations__work_on_every_result(clock, tmp_path):
    failed, found = {}, results(clock, tmp_path)
    for number, (operation, operate) in enumerate(OPERATIONS.items()):
        # At home every operation meets a third of the results, each another one.
        for name, result in share(list(found.items())[number % 3 if QUICK else 0 :], 3):
            folder = tmp_path / f"{operation} {name}"
            folder.mkdir()
            try:
                operate(result, folder)
            except Exception as error:  # all that fail are wanted, not the first
                failed[operation, name] = f"{type(error).__name__}: {error}"[:300]
    assert not failed
