"""The site: it builds without a warning, its links lead somewhere, and nothing of it comes over the network."""

import importlib
import re
import subprocess
import sys
import tomllib
from inspect import ismodule
from pathlib import Path

import pytest

import manifold_observer.pipeline as mo
import strategies
from browsing import started
from manifold_observer.pipeline.cli.commands import cli

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site; it takes 15 s."""
    if strategies.QUICK:
        pytest.skip(".ci/run builds the site; HYPOTHESIS_PROFILE=all looks at it")
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("build") / "site"
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "build.py", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_site__has_a_page_for_every_public_name_and_a_section_for_every_command(site):
    for name in mo.__all__:
        page = (site / "docs" / "api" / f"{name}.html").read_text(encoding="utf-8")
        kind = "module-" if ismodule(getattr(mo, name)) else ""
        assert f'id="{kind}manifold_observer.pipeline.{name}"' in page
    for name in mo.plot.__all__:
        assert f">{name}</span>" in (site / "docs" / "api" / "plot.html").read_text(encoding="utf-8")
    commands = (site / "docs" / "commands.html").read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert (f'id="manifold-observer-{name}"' in commands) != bool(command.hidden or command.deprecated)


def test_site__begins_with_the_documentation(site):
    assert "url=docs/index.html" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "docs" / "index.html").is_file()


def test_site__every_page_of_docs_is_in_it(site):
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT).with_suffix(".html")).is_file()


def test_site__formulas_are_drawn_by_the_browser(site):
    page = (site / "docs" / "api" / "extend.html").read_text(encoding="utf-8")
    assert page.count("<math ") >= 5
    assert "MathJax" not in page


# What sticks out of the window, unless something around it scrolls; and text that is hardly seen on its ground.
_STICKS_OUT = """
const wide = document.documentElement.clientWidth, found = [];
const scrolls = e => e && e !== document.body &&
  ((["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) && e.getBoundingClientRect().right <= wide + 1)
   || scrolls(e.parentElement));
for (const e of document.querySelectorAll("article *"))
  if (e.getBoundingClientRect().right > wide + 1 && !scrolls(e.parentElement)) found.push(e.outerHTML.slice(0, 80));
return found;
"""
_HARDLY_SEEN = """
const light = c => {
  const m = c.match(/[\\d.]+/g).map(Number);
  return m[3] === 0 ? null : (m[0] + m[1] + m[2]) / 765;
};
const ground = e => e ? light(getComputedStyle(e).backgroundColor) ?? ground(e.parentElement) : 1;
const found = [];
const told = ["p", "td", "th", "li", "pre span", ".xr-wrap span"].map(name => "article " + name).join();
for (const e of document.querySelectorAll(told)) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const apart = Math.abs(light(getComputedStyle(e).color) - ground(e));
  if (own && e.offsetParent && apart < 0.2) found.push(e.outerHTML.slice(0, 80));
}
return found;
"""


def test_site__fits_a_phone_and_is_read_in_the_dark(site):
    pages = [path for path in sorted(site.rglob("*.html")) if path.parent.name != "api" and path.parent != site]
    with started() as browser:
        for width, scheme, script in (
            (390, "light", _STICKS_OUT),
            (1400, "light", _STICKS_OUT),
            (1400, "dark", _HARDLY_SEEN),
        ):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            for page in pages:
                browser.get(page.as_uri())
                assert browser.execute_script(script) == [], (page, width, scheme)
                assert browser.execute_script("return document.querySelectorAll('h1').length") == 1, page
                assert browser.title, page
                assert browser.get_log("browser") == [], (page, "what the console says")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (r"\tfrac12 (x)", ["1", "2"]),
        (r"\frac1N", ["1", "N"]),
        (r"\frac{12}{5}", ["12", "5"]),
        (r"\frac{a}{b}", ["a", "b"]),
    ],
)
def test_formulas__a_fraction_has_the_parts_that_tex_gives_it(monkeypatch, text, parts):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    mathml = importlib.import_module("mathml")._mathml(text, block=True)
    (fraction,) = re.findall("<mfrac.*?</mfrac>", mathml, re.DOTALL)
    assert re.findall(r">(\w+)<", fraction) == parts


@pytest.fixture
def links(monkeypatch):
    """What checks the links of a site."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import links  # noqa: PLC0415 - it lies in docs/, which is no package

    return links


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b.html">b</a> <a href="b.html#there">b</a> <a href="#here">a</a> <p id="here">', []),
        ('<a href="https://example.org/x">elsewhere</a> <a href="mailto:a@b.c">a</a>', []),
        ('<a href="c.html">c</a>', ["a.html: c.html"]),
        ('<a href="b.html#nowhere">b</a>', ["a.html: b.html#nowhere"]),
        ('<a href="#nowhere">a</a>', ["a.html: #nowhere"]),
        ('<img src="c.png">', ["a.html: c.png"]),
        ('<script src="https://x.org/y.js"></script>', ["a.html: https://x.org/y.js is loaded from the network"]),
        ('<link rel="stylesheet" href="//x.org/y.css">', ["a.html: //x.org/y.css is loaded from the network"]),
        ('<a href="../outside.html">c</a>', ["a.html: ../outside.html"]),
    ],
)
def test_links__those_that_lead_nowhere_are_found(links, tmp_path, body, said):
    (tmp_path / "outside.html").write_text("<p>no part of the site")
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text(body)
    (site / "b.html").write_text('<h1 id="there">b</h1>')
    assert links.broken_links(site) == said


def test_links__styles_that_load_from_the_network_are_found(links, tmp_path):
    (tmp_path / "s.css").write_text("@font-face { src: url('https://fonts.example.org/x.woff2') }")
    assert links.broken_links(tmp_path) == ["s.css loads from the network"]


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "deploy" / "README.md"]
)
def test_pages__links_are_right_on_a_forge_too(path):
    """Files and headings of this repository; the build looks at the links of the site."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(there), target


def _anchors(path):
    """Anchors that forges give to headings."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_extra_docs__names_what_the_build_uses():
    with (ROOT / "pyproject.toml").open("rb") as file:
        needs = tomllib.load(file)["project"]["optional-dependencies"]["docs"]
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.py"))
    for need in needs:
        assert need.partition(">=")[0].replace("-", "_") in sources
