"""Files that want to run code, read other files, or exhaust memory or patience; each made anew in a folder."""

from . import code, exhausting, odd


def _makers(module):
    """What makes files, by name."""
    made = {name: make for name, make in vars(module).items() if getattr(make, "__module__", "") == module.__name__}
    return {name: make for name, make in made.items() if name != "Payload" and not name.startswith("_")}


MALICIOUS = {**_makers(code), **_makers(exhausting), **_makers(odd)}
