"""`faircopy restore`: a data directory from a backup."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from faircopy.cli.columns import size
from faircopy.cli.output import json_option, say, show
from faircopy.cli.verify import Bar, progress


@click.command()
@click.argument("backup", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="BACKUP")
@click.argument("data_dir", type=click.Path(file_okay=False, path_type=Path), metavar="DATA_DIR")
@json_option
def restore(backup: Path, data_dir: Path, as_json: bool) -> None:
    """Check BACKUP, and make the new data directory DATA_DIR from it, to start a broker on. BACKUP is one
    backup, or a directory of backups, of which the newest is taken. Nothing is made if the check finds
    damage.

    The broker then starts as if it had crashed at the moment of the backup: committed messages are there,
    open transactions are aborted, and clients can continue. Everything after the backup is lost: consumers
    that had read further find their offsets out of range.

    \b
    Exit codes: 0 done; 1 the backup is damaged, DATA_DIR is not empty, or it could not be made.
    Examples:
      faircopy restore /mnt/backups/faircopy /var/lib/faircopy
      faircopy restore /mnt/backups/faircopy/2026-11-22T104200Z /var/lib/faircopy
    """
    from faircopy.backup.make import read_manifest
    from faircopy.backup.restore import ensure_empty, find_backup
    from faircopy.backup.restore import restore as restore_backup

    found = find_backup(backup.absolute())
    ensure_empty(data_dir)
    manifest = read_manifest(found)
    total = sum(copied.size for copied in manifest.files.values())
    with progress(3 * total, is_shown=not as_json and sys.stderr.isatty()) as bar:
        rows = damage(found, bar)
        if not rows:
            bar.begin("copying")
            restore_backup(found, manifest, data_dir.absolute(), bar.advance)
    if rows:
        show(rows, as_json, empty="", folds=False)
        sys.exit(1)
    outcome = {"backup": str(found), "made": manifest.made, "data_directory": str(data_dir), "bytes": total}
    say(outcome, as_json, f"{data_dir}: {size(total)} restored, as of {manifest.made}")


def damage(backup: Path, bar: Bar) -> list[dict[str, object]]:
    """The damage in a backup, by its own checksums and by the checks of `faircopy verify`."""
    from faircopy.backup.make import read_manifest
    from faircopy.backup.restore import flaws_of
    from faircopy.verify.directory import DirectoryCheck

    bar.begin("checksums")
    rows: list[dict[str, object]] = [
        {"file": str(path), "byte": None, "what": what}
        for path, what in flaws_of(backup, read_manifest(backup), bar.advance)
    ]
    if not rows:
        findings = DirectoryCheck(backup, bar.advance).run(bar.begin)
        rows = [{"file": str(each.path), "byte": each.byte, "what": each.what} for each in findings]
    return rows
