"""Entry point of ``manifold-observer``: it listens to signals before it imports the program, which takes a while."""

from __future__ import annotations

from ..graph.ending import Hearing


def main() -> None:
    """Run the command, and end as soon as it has cleaned up where a signal asked for it."""
    hearing = Hearing().listen()
    from .commands import main as command  # noqa: PLC0415

    hearing.begin()
    try:
        command()
    except SystemExit as done:
        if hearing.heard is None:
            raise
        hearing.leave(done.code if isinstance(done.code, int) else 1)


if __name__ == "__main__":
    main()
