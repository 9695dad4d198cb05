"""Libraries of single fields, which are imported when a file asks for them."""

import importlib
import sys
import warnings
from typing import Any


def library(reader: str, path: str, module: str, package: str | None = None) -> Any:
    """Import a library, or say what to install.

    Parameters
    ----------
    reader
        Short name of the reader, for the error.
    path
        The file that needs it.
    module
        What is imported.
    package
        What is installed; by default of the same name.

    Returns
    -------
    The module.

    Raises
    ------
    ImportError
        It is not installed, or it cannot be imported.

    Examples
    --------
    >>> library("wfdb", "100.hea", "no_such_library")
    Traceback (most recent call last):
    ImportError: wfdb: 100.hea needs the package no_such_library, which is not installed. Install it with: pip ...
    """
    if (there := sys.modules.get(module)) is not None:
        return there
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a library says of its own imports is of no use to the user
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        name = package or error.name
        raise ImportError(
            f"{reader}: {path} needs the package {name}, which is not installed. Install it with: pip install {name}."
        ) from None
