"""In which encoding a table may be that is not UTF-8: what an error can suggest."""

import codecs
import re

from .sniff import read_head

_HEAD_BYTES = 2**16
# Encodings of two bytes a letter, which runs of high bytes tell from those of one.
_WIDE = ("cp932", "gbk", "euc_kr", "big5")
_RUN = re.compile(rb"[\x80-\xff]{3,}")


def known_encoding(encoding: str | None) -> str | None:
    """The encoding that the user names, which Python must know.

    Examples
    --------
    >>> known_encoding("cp1252"), known_encoding(None)
    ('cp1252', None)
    """
    try:
        return encoding and codecs.lookup(encoding).name and encoding
    except (LookupError, ValueError):
        raise ValueError(f"csv: encoding must be one that Python knows, such as 'cp1252'; got {encoding!r}.") from None


def marked_encoding(path: str) -> str:
    """Tell UTF-16 from UTF-8 by the byte-order mark.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes("t;x".encode("utf-16"))
    ...     marked_encoding(folder + "/a.csv")
    'utf-16'
    """
    return "utf-16" if read_head(path, 2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def likely_encoding(path: str) -> str:
    """An encoding in which the beginning of a file can be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     western, eastern = Path(folder, "a.csv"), Path(folder, "b.csv")
    ...     _ = western.write_bytes("Länge,°C".encode("cp1252")), eastern.write_bytes("日時,温度".encode("cp932"))
    ...     likely_encoding(str(western)), likely_encoding(str(eastern))
    ('cp1252', 'cp932')
    """
    head = read_head(path, _HEAD_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head  # a letter may be cut at the end
    return next((name for name in _WIDE if _RUN.search(head) and _reads(head, name)), "cp1252")


def wide_encoding(path: str) -> str | None:
    r"""UTF-16 whose byte-order mark is missing, told from its empty bytes; None for other files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes("t;x\n0;1\n".encode("utf-16-le"))
    ...     wide_encoding(folder + "/a.csv")
    'utf-16-le'
    """
    head = read_head(path, 512)
    for name, empty, full in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        if len(head) >= 8 and not any(head[empty::2]) and all(head[full::2]):
            return name
    return None


def _reads(text: bytes, encoding: str) -> bool:
    """Whether a text can be read in an encoding, as letters that are not of half width."""
    try:
        read = text.decode(encoding)
    except UnicodeError:
        return False
    return not re.search("[\uff61-\uff9f]", read)
