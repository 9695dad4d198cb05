"""One estimate by one package, in that package's own interpreter; started by compare_packages.py.

    python package_worker.py WAY FOLDER

FOLDER has ``features.npy`` (frame, feature), ``lengths.npy`` of the pieces without a gap, ``settings.json`` and, for
this project, ``frames.pickle``. ``estimate.npy`` is written there, and one JSON object printed. Nothing is imported but
NumPy and the package, so that any interpreter which has these can run it.
"""

# ruff: noqa: PLC0415 - every package is imported in its own environment alone
import json
import pickle
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np


def main(way, folder):
    """Estimate, and say what it took; what is imported is not in the time, but in the memory before."""
    settings = json.loads((folder / "settings.json").read_text())
    if settings["limit"]:
        # Address space that is written to; the second is what this project's plan asks for.
        resource.setrlimit(resource.RLIMIT_DATA, (settings["limit"], settings["limit"]))
        resource.setrlimit(resource.RLIMIT_RSS, (settings["limit"], settings["limit"]))
    package, estimate = WAYS[way]
    found = estimate()  # imports
    features, lengths = (np.load(folder / f"{name}.npy") for name in ("features", "lengths"))
    before, began = _peak(), time.process_time()
    values = np.real(np.asarray(found(features, lengths, settings["modes"], folder)))
    spent = time.process_time() - began
    np.save(folder / "estimate.npy", values)
    said = {"seconds": round(spent, 3), "before_mb": round(before), "peak_mb": round(_peak())}
    print(json.dumps({"version": version(package), "numpy": np.__version__, **said}))


def ours(method="observe"):
    """This project with no setting touched: `observe` from the past, `smooth` from all frames."""

    def prepare():
        import dask

        import manifold_observer.pipeline as mo

        embed, estimate = mo.embed, getattr(mo, method)  # imported here, where the clock does not run yet

        def find(features, lengths, modes, folder):
            frames = pickle.loads((folder / "frames.pickle").read_bytes())
            with dask.config.set(scheduler="synchronous"):
                return estimate(embed(frames), frames)["state"].transpose("frame", "mode").values

        return find

    return prepare


def datafold_maps(scale="optimised"):
    """The recipe of datafold's tutorials, scale and cut-off from the data; or the median of the squared distances."""

    def prepare():
        import datafold.pcfold as pfold
        from datafold.dynfold import DiffusionMaps

        def find(features, lengths, modes, folder):
            points = pfold.PCManifold(features)
            if scale == "median":
                kernel = pfold.GaussianKernel(epsilon=_median(features) / 2)  # exp(-d^2 / 2 epsilon)
            else:
                points.optimize_parameters(random_state=0)
                kernel = pfold.GaussianKernel(epsilon=points.kernel.epsilon, distance={"cut_off": points.cut_off})
            return np.asarray(DiffusionMaps(kernel, n_eigenpairs=modes + 1).fit_transform(points))[:, 1:]

        return find

    return prepare


def datafold_landmarks():
    """Roseland with a quarter of the frames as landmarks, as by default, at most 2,000; scale the median."""
    import datafold.pcfold as pfold
    from datafold.dynfold import Roseland

    def find(features, lengths, modes, folder):
        kernel = pfold.GaussianKernel(epsilon=_median(features) / 2)
        marks = min(len(features) // 4, 2000)
        model = Roseland(kernel, n_svdtriplet=modes + 1, landmarks=marks, random_state=0)
        return np.asarray(model.fit_transform(pfold.PCManifold(features)))[:, 1:]

    return find


def pydiffmap_maps(scale="bgh"):
    """The defaults of pydiffmap: 64 neighbours, scale by Berry, Giannakis and Harlim; or the median."""

    def prepare():
        from pydiffmap.diffusion_map import DiffusionMap

        def find(features, lengths, modes, folder):
            epsilon = _median(features) / 4 if scale == "median" else scale  # exp(-d^2 / 4 epsilon)
            return DiffusionMap.from_sklearn(n_evecs=modes, k=64, epsilon=epsilon, alpha=0.5).fit_transform(features)

        return find

    return prepare


def _median(features):
    """Median of the squared distances of a thousand frames."""
    some = features[:: max(len(features) // 1000, 1)]
    squares = np.square(some).sum(axis=1)
    between = squares[:, None] + squares - 2 * some @ some.T
    return float(np.median(between[np.triu_indices(len(some), 1)]))


def deeptime_tica():
    """TICA at a lag of one frame, which never pairs frames across a gap."""
    from deeptime.decomposition import TICA

    def find(features, lengths, modes, folder):
        pieces = np.split(features, np.cumsum(lengths)[:-1])
        model = TICA(lagtime=1, dim=modes).fit([piece for piece in pieces if len(piece) > 1]).fetch_model()
        return model.transform(features)

    return find


def xeofs_eof():
    """EOFs along the frames."""
    import xarray as xr
    import xeofs as xe

    def find(features, lengths, modes, folder):
        coords = {"frame": np.arange(len(features)), "feature": np.arange(features.shape[1])}
        labelled = xr.DataArray(features, dims=("frame", "feature"), coords=coords)
        scores = xe.single.EOF(n_modes=modes, random_state=0).fit(labelled, dim="frame").scores()
        return scores.transpose("frame", "mode").values

    return find


def sklearn_pca():
    """Principal components."""
    from sklearn.decomposition import PCA

    def find(features, lengths, modes, folder):
        return PCA(n_components=modes, random_state=0).fit_transform(features)

    return find


WAYS = {
    "observe": ("manifold-observer", ours()),
    "smooth": ("manifold-observer", ours("smooth")),
    "DiffusionMaps": ("datafold", datafold_maps()),
    "DiffusionMaps, median": ("datafold", datafold_maps("median")),
    "Roseland": ("datafold", datafold_landmarks),
    "DiffusionMap": ("pydiffmap", pydiffmap_maps()),
    "DiffusionMap, median": ("pydiffmap", pydiffmap_maps("median")),
    "TICA": ("deeptime", deeptime_tica),
    "EOF": ("xeofs", xeofs_eof),
    "PCA": ("scikit-learn", sklearn_pca),
}


def _peak():
    """Largest resident memory so far, MB; `getrusage` would begin with that of the process which started this one."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1000


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
