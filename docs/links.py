"""Links of a built site: each leads to a file and an anchor that exist, and nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, by tag and attribute.
_LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")}
_LOADED_RELATIONS = {"stylesheet", "icon", "shortcut icon", "preload", "modulepreload", "manifest"}


class _Page(HTMLParser):
    """Anchors, links, and what is loaded, of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.loaded += [found[name] for name in ("src",) if (tag, name) in _LOADED and name in found]
        if tag == "link" and found.get("rel", "") in _LOADED_RELATIONS:
            self.loaded.append(found.get("href", ""))


def broken_links(site: Path) -> list[str]:
    """Links of all pages of a folder that lead nowhere, and files that would come over the network.

    Parameters
    ----------
    site
        Folder of HTML pages.

    Returns
    -------
    One sentence each; none where all is well.
    """
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    said = [
        f"{path.relative_to(site)}: {target}" for path, page in pages.items() for target in _broken(path, page, pages)
    ]
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(['\"]?https?:|@import", path.read_text("utf-8"))]
    return said + [f"{path.relative_to(site)} loads from the network" for path in styles]


def _broken(path: Path, page: _Page, pages: dict[Path, _Page]) -> list[str]:
    """Links of one page that lead nowhere."""
    outside = [target for target in page.loaded if urlsplit(target).scheme in ("http", "https") or target[:2] == "//"]
    inside = [target for target in [*page.links, *page.loaded] if not urlsplit(target).scheme and target[:2] != "//"]
    return [f"{target} is loaded from the network" for target in outside] + [
        target for target in inside if not _leads_somewhere(path, target, pages)
    ]


def _leads_somewhere(path: Path, target: str, pages: dict[Path, _Page]) -> bool:
    """Whether the file and the anchor of a link exist."""
    parts = urlsplit(target)
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if parts.fragment and there in pages:
        return unquote(parts.fragment) in pages[there].anchors
    return there.is_file() and (there.suffix != ".html" or there in pages)
