"""Numbers of every experiment as if all claims held, by which judges are tested on both sides of their thresholds."""

import numpy as np
import xarray as xr

from manifold_observer.pipeline.paper.circle import TRUTH
from manifold_observer.pipeline.paper.printed import CIRCLES, SPHERES
from manifold_observer.pipeline.paper.sphere import ANGLES
from manifold_observer.pipeline.paper.theory import double_well_rates

R = 12
AVERAGES = ["moving_average_2", "moving_average_3", "moving_average_5"]
LEVELS = {
    "observer": 0.80,
    "diffusion_maps": 0.60,
    "moving_average_2": 0.70,
    "moving_average_3": 0.71,
    "moving_average_5": 0.70,
    "kalman": 0.85,
    "smoother": 0.90,
    "smoothed_pca": 0.75,
    "tica": 0.65,
    "gamma_1": 0.10,
    "shuffled": 0.40,
    "nystrom": 0.62,
    "one-sided": 0.61,
}


def noise(*shape, size=1e-3, seed=0):
    """Small numbers that differ among realisations."""
    return size * np.random.default_rng(seed).normal(size=shape)


def drift():
    """Correlations (drift rate, realisation, estimate, component); 5 is best at the slowest drift, 2 at the fastest."""
    names = [name for name in LEVELS if name not in ("shuffled", "nystrom", "one-sided")]
    level = np.array([LEVELS[name] for name in names])
    values = level[:, None] + noise(3, R, len(names), 2)
    for place, name in ((0, "moving_average_5"), (-1, "moving_average_2")):
        values[place, :, names.index(name)] += 0.05
    dims = ("drift_rate", "realisation", "estimate", "component")
    coords = {"drift_rate": [0.008, 0.016, 0.024], "estimate": names, "component": list(ANGLES)}
    return xr.Dataset({"correlation": (dims, values)}, coords=coords)


def sphere(names=("observer", "diffusion_maps", "shuffled")):
    """Scores (realisation, estimate, component) and boundary ratios."""
    level = np.array([LEVELS[name] for name in names])[:, None]
    dims = ("realisation", "estimate", "component")
    ratios = ("realisation", "estimate")
    return xr.Dataset(
        {
            "correlation": (dims, level + noise(R, len(names), 2)),
            "single": (dims, level + noise(R, len(names), 2, seed=1)),
            "boundary_ratio": (ratios, 1.8 + noise(R, len(names))),
            "shrinkage_ratio": (ratios, 1.6 + noise(R, len(names), seed=1)),
        },
        coords={"estimate": list(names), "component": list(ANGLES)},
    )


def set_up():
    """Deviations (path, seed, component) that are those of the equation."""
    expected = np.sqrt(0.005 / (2 * np.array([0.008, 0.024])))[:, None, None]
    values = expected * (1 + noise(2, 10, 2, size=0.02))
    return xr.Dataset(
        {"deviation": (("path", "seed", "component"), values)},
        coords={"drift_rate": ("path", [0.008, 0.024])},
        attrs={"variance": 0.005},
    )


def circle():
    """Rates near the truth for all settings, and noise that multiplies the fourth most."""
    names = ["exact, 0.01 s", "exact, 0.3 s", "counts, 0.01 s", "counts, 0.3 s", "counts, 0.3 s, dark"]
    rate = TRUTH * (1 + noise(R, 2, 4, 4, size=0.01))
    rate[:, 1] *= 1.05
    factors = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1.1] * 4, [1, 1, 1, 1.05], [1, 1, 1, 1.2]])
    sensed = factors * TRUTH * (1 + noise(R, 5, 4, size=0.001))
    return xr.Dataset(
        {
            "rate": (("realisation", "alpha", "epsilon_factor", "mode"), rate),
            "sensed_rate": (("realisation", "sensing", "mode"), sensed),
        },
        coords={
            "alpha": [0.0, 0.5],
            "epsilon_factor": [0.08, 0.16, 0.32, 1.0],
            "sensing": names,
            "mode": [1, 2, 3, 4],
        },
    )


def music():
    """One kind of piece in which the observer is better in everything."""
    estimates, labels = ["observer", "diffusion_maps", "smoothed_pca", "pca"], ["note", "instrument"]
    better = np.array([0.3, 0.0, 0.0, 0.0])
    values = {
        "accuracy": (("realisation", "label", "estimate"), 0.6 + better + noise(R, 2, 4)),
        "silhouette": (("realisation", "estimate", "label"), 0.2 + better[:, None] + noise(R, 4, 2)),
        "silhouette_null": (("realisation", "estimate", "label"), noise(R, 4, 2)),
        "pace_accuracy": (("realisation", "estimate", "pace"), np.array([0.9, 0.5]) + noise(R, 4, 2)),
        "threshold_area": (("realisation", "estimate"), 0.96 + noise(R, 4)),
        "many_accuracy": (("realisation", "label", "pair"), 0.6 + better[:2] + noise(R, 2, 2)),
    }
    values["pace_accuracy"][1][:, 3] = np.array([0.95, 0.75]) + noise(R, 2)
    made = {
        f"solo_{name}": (tuple(f"solo_{d}" if d == "realisation" else d for d in dims), v)
        for name, (dims, v) in values.items()
    }
    coords = {"estimate": estimates, "label": labels, "pace": ["slow", "rapid"], "pair": estimates[:2]}
    return xr.Dataset(made, coords=coords, attrs={"kinds": "solo", "solo_sound": "made up"})


def printed_sphere():
    """The observer above all in every setting."""
    names = ["observer", "diffusion_maps", *AVERAGES]
    values = np.array([LEVELS[name] for name in names])[:, None] + noise(len(SPHERES), 2, R, len(names), 2)
    return xr.Dataset(
        {
            "correlation": (("case", "drift_rate", "realisation", "estimate", "component"), values),
            "window": (("case", "drift_rate", "realisation", "component"), np.full((len(SPHERES), 2, R, 2), 5.0)),
        },
        coords={
            "case": list(SPHERES),
            "drift_rate": [0.008, 0.024],
            "estimate": names,
            "component": list(ANGLES),
        },
    )


def printed_circle():
    """All settings near the truth, the mend nearest."""
    values = TRUTH * (1 + noise(R, len(CIRCLES), 4, size=0.01))
    values[:, list(CIRCLES).index("arc 1")] *= 1.1
    return xr.Dataset(
        {"rate": (("realisation", "case", "mode"), values)}, coords={"case": list(CIRCLES), "mode": [1, 2, 3, 4]}
    )


def theory():
    """What the appendices say, and right rates of the double well."""
    drift, curved = np.array([1.0, 2.0]) * (1 + noise(R, 2, size=0.01)), 0.01 + noise(R, 2, 2)
    error = np.ones((R, 2, 2, 8)) * np.array([0.01, 0.1])[:, None, None] + noise(R, 2, 2, 8)
    return xr.Dataset(
        {
            "drift_drift_rate": (("r", "m"), drift),
            "drift_known_rate": (("r", "m"), np.ones((R, 1)) * [1.0, 2.0]),
            "drift_spectrum_rate": (("r", "m"), np.ones((R, 1)) * [1.0, 2.0]),
            "drift_curved": (("r", "estimate", "m"), np.abs(curved)),
            "distance_order": (("r", "arc", "kind"), np.array([4.0, 3.0]) + noise(R, 2, 2)),
            "distance_error": (("r", "arc", "kind", "distance_distance"), error),
            "distance_ratio": (("r", "arc"), 1 + noise(R, 2)),
            "well_rate": (("r", "alpha", "mode"), double_well_rates(3) * (1 + noise(R, 2, 3, size=0.01))),
        },
        coords={"distance_distance": np.linspace(0.1, 0.7, 8)},
    )


ALL = {
    "set-up": set_up,
    "sphere": sphere,
    "drift": drift,
    "extension": lambda: sphere(("observer", "nystrom", "one-sided")),
    "circle": circle,
    "music": music,
    "printed-sphere": printed_sphere,
    "printed-circle": printed_circle,
    "theory": theory,
}
