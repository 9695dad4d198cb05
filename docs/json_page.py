"""The page docs/json.md, made from the schemas of the package: ``python docs/json_page.py`` writes it."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("json.md")
_ORDER = ("look", "run", "tune", "plan", "continue", "info", "report", "demo", "doctor", "reproduce", "corpus-init")
_ORDER += ("corpus-check", "corpus-status", "corpus-clean", "error")
_HEAD = """# JSON for scripts

Every command that has an answer takes `--json`, and then prints one JSON object on one line of standard output, and
nothing else there (`continue --follow`: one line for each part). It is ASCII, whatever names of files hold, and has
neither `NaN` nor `Infinity`: such numbers are `null`. Bars, notices and warnings go to standard error; the answer lists
the warnings.

Where a command fails, the line is [an error](#an-error), and standard error has the same sentence; with
`--log-format json` it is the last event of the log. Exit codes are those of [watching a job](watching.md#exit-codes).

```bash
manifold-observer run night.wav night.zarr --frame 23ms --json > night.json
```

What follows is made from JSON Schemas that come with the package. Every field is listed, with
its type:

```python
import json
from importlib.resources import files

schema = json.loads((files("manifold_observer.pipeline.cli") / "schemas" / "run.json").read_text(encoding="utf-8"))
```
"""


def page() -> str:
    """The text of the page.

    Returns
    -------
    Markdown, a section for each schema.
    """
    folder = files("manifold_observer.pipeline.cli") / "schemas"
    schemas = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in _ORDER}
    return _HEAD + "".join(_section(name, schema) for name, schema in schemas.items())


def _section(name: str, schema: dict[str, Any]) -> str:
    """One command."""
    title = "An error" if name == "error" else f"`{schema['title'].removesuffix(' --json')}`"
    lines = [f"\n## {title}\n", f"{schema['description']} ({name}.json)\n"]
    for number, one in enumerate(schema.get("oneOf", [schema])):
        if number:
            lines.append("\nOr:\n")
        lines += ["| field | type | what |", "|---|---|---|", *_rows(one, "")]
    return "\n".join(lines) + "\n"


def _rows(schema: dict[str, Any], path: str) -> Iterator[str]:
    """A row for each field, and for those within."""
    for name, one in schema.get("properties", {}).items():
        may = "" if name in schema.get("required", ()) else ", may be absent"
        yield f"| `{path}{name}` | {_type(one)}{may} | {one.get('description', '')} |"
        yield from _within(one, f"{path}{name}")
    for name, one in schema.get("patternProperties", {}).items():
        yield f"| `{path}...{name.rstrip('$')}` | {_type(one)} | {one.get('description', '')} |"


def _within(one: dict[str, Any], path: str) -> Iterator[str]:
    """Fields of what a list, an object, or one of names holds."""
    if "properties" in one:
        yield from _rows(one, f"{path}.")
    inner = one.get("items")
    for kind in [] if inner is None else inner.get("oneOf", [inner]):
        yield from _within(kind, f"{path}[]")
    if isinstance(one.get("additionalProperties"), dict):
        yield from _within(one["additionalProperties"], f"{path}.NAME")


def _type(one: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "const" in one:
        return f"`{json.dumps(one['const'])}`"
    if "enum" in one:
        return ", ".join(f"`{json.dumps(value)}`" for value in one["enum"])
    kinds = one.get("type", "object" if "oneOf" in one else "anything")
    words = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    if words.startswith("array"):
        return f"list of {_type(one.get('items', {}))}"
    if words == "object" and isinstance(one.get("additionalProperties"), dict):
        return f"object: {_type(one['additionalProperties'])} by name"
    return words


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
