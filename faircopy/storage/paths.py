"""Files and directories by path: create, rename, link, delete, list, and read or write whole files.

Every function may block; callers decide on which thread. They raise StorageFailure.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable
from pathlib import Path

from faircopy.storage.failures import NoDescriptors, StorageFailure, read_failure, write_failure
from faircopy.storage.file import File
from faircopy.storage.system import Space, mounted


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: needed after a file in it was created, renamed or deleted."""
    try:
        mounted().sync_directory(path)
    except OSError as error:
        raise write_failure(f"fsync of directory {path}", error) from error


def make_directory(path: Path, *, durable: bool = True) -> None:
    """Create a directory and its parents, durably if asked. Nothing happens if it exists."""
    if is_directory(path):
        return
    make_directory(path.parent, durable=durable)
    try:
        mounted().make_directory(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise write_failure(f"making the directory {path}", error) from error
    if not durable:
        return
    try:
        sync_directory(path.parent)
    except NoDescriptors:
        # Otherwise the next try would find it, and believe that its name is durable.
        with contextlib.suppress(OSError):
            mounted().remove_directory(path)
        raise


def sync_names(root: Path) -> None:
    """Make every name in a directory and below it durable. Blocks. Raises StorageFailure.

    A process that is killed may leave a name that it has made and not synced. The next one finds it, and
    would take it for durable; what it fsyncs under that name could be lost with the power, name and all.
    """
    for child in list_directory(root):
        if is_directory(child):
            sync_names(child)
    sync_directory(root)


def is_directory(path: Path) -> bool:
    """Whether a directory exists."""
    status = mounted().status(path)
    return status is not None and status.is_directory


def exists(path: Path) -> bool:
    """Whether a file or directory exists."""
    return mounted().status(path) is not None


def reaches(path: Path, byte: int) -> bool:
    """Whether a file exists and has at least this many bytes."""
    status = mounted().status(path)
    return status is not None and status.size >= byte


def size_of(path: Path) -> int:
    """The size in bytes of an existing file."""
    status = mounted().status(path)
    if status is None:
        raise StorageFailure(f"{path} is gone")
    return status.size


def space_around(path: Path) -> Space:
    """The size of the disk that holds a path, and how much of it is free. Raises StorageFailure."""
    try:
        return mounted().space(path)
    except OSError as error:
        raise read_failure(f"asking for the space around {path}", error) from error


def delete_file(path: Path) -> None:
    """Delete a file; nothing happens if it does not exist."""
    try:
        mounted().delete(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise write_failure(f"deleting {path}", error) from error


def rename_file(old: Path, new: Path) -> None:
    """Rename a file within its directory; the caller makes the name durable."""
    try:
        mounted().rename(old, new)
    except OSError as error:
        raise write_failure(f"renaming {old} to {new.name}", error) from error


def link_file(old: Path, new: Path) -> None:
    """Give a file an additional name, in any directory of the same file system. Raises StorageFailure."""
    try:
        mounted().link(old, new)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise write_failure(f"linking {old} to {new}", error) from error
        raise read_failure(f"linking {old} to {new}", error) from error


def delete_tree(path: Path, *, durable: bool = True) -> None:
    """Delete a directory of ours with all its content, durably if asked. It may be missing."""
    if not is_directory(path):
        return
    for child in list_directory(path):
        if is_directory(child):
            delete_tree(child, durable=durable)
        else:
            delete_file(child)
    try:
        mounted().remove_directory(path)
    except OSError as error:
        raise write_failure(f"deleting {path}", error) from error
    if durable:
        sync_directory(path.parent)


def list_directory(path: Path) -> list[Path]:
    """The content of a directory, sorted by name; empty if the directory does not exist."""
    try:
        names = mounted().list(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise read_failure(f"listing {path}", error) from error
    return [path / name for name in sorted(names)]


def read_file(path: Path) -> bytes:
    """The content of a file."""
    file = File(path, read_only=True)
    return file.read(file.size(), 0)


def write_file(path: Path, content: bytes) -> None:
    """Durably write a file with this content; after a crash it is either complete or as it was before."""
    temporary = path.with_suffix(".tmp")
    delete_file(temporary)
    file = File(temporary, create=True)
    file.write([content], 0)
    file.sync()
    rename_file(temporary, path)
    sync_directory(path.parent)


def list_files(path: Path, suffix: str) -> list[Path]:
    """The files of a directory with this suffix, sorted by name."""
    return with_suffix(suffix, list_directory(path))


def with_suffix(suffix: str, paths: Iterable[Path]) -> list[Path]:
    """The files that have this suffix."""
    return [path for path in paths if path.suffix == suffix]
