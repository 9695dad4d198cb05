"""How errors say that a job can go on: the command that met them adds which command that is."""

from __future__ import annotations

RESUMES = "The same command resumes"
"""How such a note begins."""


def resumes(error: BaseException) -> bool:
    """Whether what ended a job has left something from which the same command goes on.

    Examples
    --------
    >>> error = KeyboardInterrupt()
    >>> error.add_note(f"{RESUMES} after pass 2.")
    >>> resumes(error), resumes(ValueError())
    (True, False)
    """
    return any(note.startswith(RESUMES) for note in getattr(error, "__notes__", []))
