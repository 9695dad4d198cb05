"""A browser, where Debian's is installed, and a page to show in it."""

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from browsing import HOSTILE, LABELS, started, until


@pytest.fixture(scope="session")
def browser():
    with started() as found:
        yield found


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """A result of a table with names as hostile as a file can have them, two stretches and labels; and its page."""
    folder = tmp_path_factory.mktemp("shown")
    rng = np.random.default_rng(0)
    t = np.arange(240) * 0.5
    t[120:] += 30
    values = np.stack([np.sin(t / (3 + k)) for k in range(len(HOSTILE))], axis=1) + 0.05 * rng.normal(size=(240, 6))
    head = ",".join('"' + name.replace('"', '""') + '"' for name in (*HOSTILE, "<u>activity"))
    text = [",".join(f"{cell:.6f}" for cell in row) for row in np.column_stack([t, values])]
    rows = "\n".join(f"{row},{LABELS[k // 40 % 2]}" for k, row in enumerate(text))
    path = folder / "a<b>&'$x$.csv"
    path.write_text(f"time,{head}\n{rows}\n", encoding="utf-8")
    opening = mo.OpenConfig(labels=["<u>activity"])
    config = mo.RunConfig(mo.FeatureConfig("identity"), opening, mo.EmbedConfig(n_modes=3))
    mo.run([path], folder / "out.zarr", config)
    return folder / "out.zarr", mo.report(folder / "out.zarr", folder / "out.html")


@pytest.fixture
def opened(browser, shown):
    """The page in the browser, with logs that begin with it."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(shown[1].as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "true")
    return browser
