"""Ways in which a file or its disk is damaged, and what a folder holds."""

import contextlib
import hashlib
import resource
import shutil


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 0x10
    path.write_bytes(content)


def make_folder(path):
    path.unlink()
    path.mkdir()


WAYS = {
    "0 bytes": lambda path: path.write_bytes(b""),
    "cut": cut,
    "cut by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a flipped byte in the middle": flip,
    "a flipped byte at the beginning": lambda path: flip(path, 0.0),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "garbage": lambda path: path.write_bytes(b"years of work\n" * 100),
    "a folder": make_folder,
}


def digest_of(folder):
    """Everything in a folder: kinds, names, links, contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = f"link to {path.readlink()}"
        elif path.is_dir():
            found[str(path.relative_to(folder))] = "folder"
        else:
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextlib.contextmanager
def files_of_at_most(size):
    """The kernel itself refuses longer files, as a full disk would: with an error in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def disk_of(free):
    """What stands for shutil.disk_usage on a disk with so many free bytes."""
    usage = shutil.disk_usage("/")
    return lambda _path: usage._replace(free=free)
