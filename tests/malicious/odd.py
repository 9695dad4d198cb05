"""Tables without end, and what is no file: pipes, devices, sockets."""

import os
import socket

from .by_hand import zarr_2

# ---------------------------------------------------------------------------------------------------------- tables


def _text(folder, text):
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


def table_cell_of_10_megabytes(folder):
    return _text(folder, "x,y\n1,2\n" + "3" * 10**7 + ",4\n")


def table_line_without_end(folder):
    return _text(folder, "1," * 10**7)


def table_of_a_million_columns(folder):
    return _text(folder, ("1," * 10**6 + "1\n") * 2)


def table_with_a_quote_that_never_closes(folder):
    return _text(folder, 'x,y\n1,2\n"3' + ",4\n" * 10**6)


def table_with_zero_bytes(folder):
    return _text(folder, "x,y\n1,2\n" + "3,4\n" * 5000 + "5\0,6\n")


def table_of_a_wide_and_ragged_kind(folder):
    return _text(folder, "x\n" + "".join("," * (k % 97) + "\n" for k in range(10**5)))


# ------------------------------------------------------------------------------------------------------- no files


def _fifo(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def fifo_named_wav(folder):
    return _fifo(folder / "a.wav")


def fifo_named_csv(folder):
    return _fifo(folder / "a.csv")


def fifo_named_npy(folder):
    return _fifo(folder / "a.npy")


def fifo_named_nc(folder):
    return _fifo(folder / "a.nc")


def fifo_named_zarr(folder):
    return _fifo(folder / "a.zarr")


def fifo_for_metadata(folder):
    root = zarr_2(folder)
    (root / ".zgroup").unlink()
    _fifo(root / ".zgroup")
    return root


def fifo_for_a_chunk(folder):
    root = zarr_2(folder)
    (root / "recording" / "0").unlink()
    _fifo(root / "recording" / "0")
    return root


def _link(folder, name, target):
    (folder / name).symlink_to(target)
    return folder / name


def device_named_csv(folder):
    return _link(folder, "a.csv", "/dev/zero")


def device_named_wav(folder):
    return _link(folder, "a.wav", "/dev/zero")


def device_named_nc(folder):
    return _link(folder, "a.nc", "/dev/zero")


def link_to_itself(folder):
    return _link(folder, "a.csv", "a.csv")


def a_socket(folder):
    here = os.getcwd()
    os.chdir(folder)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("a.wav")
    finally:
        os.chdir(here)
    return folder / "a.wav"
