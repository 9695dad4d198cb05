"""A browser, where Debian's is installed, and a page to show in it."""

import shutil

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from browsing import FLAGS, HOSTILE, LABELS, until


@pytest.fixture(scope="session")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Debian's chromium and chromium-driver")
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 - where it is installed

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


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
