"""EDF and BDF files made field by field, with whatever fault a test wants."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Edf:
    """A file: ``signals`` are (label, unit, physical low and high, digital values of shape (records, samples))."""

    signals: list
    onsets: list | None = None
    seconds: float = 1.0
    kind: str = ""
    width: int = 2
    limits: tuple = (-32768, 32767)
    notes: list = field(default_factory=list)
    recording: str = "Startdate 02-MAR-2031 X X X"
    date: str = "02.03.31"
    time: str = "04.05.06"
    claimed: int | None = None

    @property
    def n_records(self):
        return len(self.signals[0][4]) if self.signals else len(self.onsets)

    def note_bytes(self, number, size=120):
        """What the signal of annotations holds in a record."""
        text = f"{self.onsets[number]:+g}\x14\x14\0".encode()
        for record, onset, duration, label in self.notes:
            if record == number:
                lasting = "" if duration is None else f"\x15{duration:g}"
                text += f"{onset:+g}{lasting}\x14{label}\x14\0".encode()
        assert len(text) <= size
        return text.ljust(size, b"\0")

    def fields(self):
        """Texts of all signals, field by field, with their widths."""
        letters = "EDF" if self.width == 2 else "BDF"
        rows = [
            (label, "", unit, f"{low:g}", f"{high:g}", *map(str, self.limits), "", str(values.shape[1]), "")
            for label, unit, low, high, values in self.signals
        ]
        if self.onsets is not None:
            rows.append(
                (f"{letters} Annotations", "", "", "-1", "1", *map(str, self.limits), "", str(120 // self.width), "")
            )
        return rows

    def head(self):
        """The header."""
        rows = self.fields()
        claimed = self.n_records if self.claimed is None else self.claimed
        version = b"0       " if self.width == 2 else b"\xffBIOSEMI"
        fixed = [(f"{'X X X X':80}"), f"{self.recording:80}", f"{self.date:8}", f"{self.time:8}"]
        fixed += [
            f"{256 * (1 + len(rows)):<8}",
            f"{self.kind:44}",
            f"{claimed:<8}",
            f"{self.seconds:<8g}",
            f"{len(rows):<4}",
        ]
        widths = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
        table = "".join(f"{row[column]:{size}}" for column, size in enumerate(widths) for row in rows)
        return version + "".join(fixed).encode("latin-1") + table.encode("latin-1")

    def body(self):
        """All records."""
        parts = []
        for number in range(self.n_records):
            for *_, values in self.signals:
                wide = np.asarray(values[number], "<i4").view(np.uint8).reshape(-1, 4)
                parts.append(wide[:, : self.width].tobytes())
            if self.onsets is not None:
                parts.append(self.note_bytes(number))
        return b"".join(parts)

    def write(self, path):
        path.write_bytes(self.head() + self.body())
        return path


def physical(values, low, high, limits=(-32768, 32767)):
    """What digital values stand for."""
    return (np.asarray(values, float) - limits[0]) * ((high - low) / (limits[1] - limits[0])) + low
