"""What tests in a browser share: names that mean harm, waiting, and what it asked the network for."""

import contextlib
import json
import shutil
import time

import pytest

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--no-first-run --disable-dev-shm-usage --window-size=1280,900"
)
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    "'><svg onload=window.hacked=3>",
    "javascript:window.hacked=4",
    "@{x} $$\\frac{1}{2}$$ {{7*7}} ${window.hacked=5}",
    "ünïcode \u202e <!-- ]]>",
)
LABELS = ("</script><b>rest</b>", "<i onmouseover=window.hacked=6>run")


@contextlib.contextmanager
def started():
    """Debian's browser, without a window; the test is left out where it is not installed."""
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
    try:
        yield found
    finally:
        found.quit()


def until(condition, within=20.0):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.02)


def requests(browser):
    """Addresses that the browser asked for."""
    return [m["params"]["request"]["url"] for m in _network(browser) if m["method"] == "Network.requestWillBeSent"]


def blocked(browser):
    """Why requests came to nothing."""
    return [m["params"].get("blockedReason") for m in _network(browser) if m["method"] == "Network.loadingFailed"]


def _network(browser):
    """What the browser tells of its network since it was asked last."""
    return [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
