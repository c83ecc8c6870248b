"""File system check for a SQLite ledger: refuse network file systems, whose locks SQLite cannot trust.

Reads ``/proc/self/mountinfo``; where that does not exist (not Linux) nothing is refused.
"""

from __future__ import annotations

from pathlib import Path

from errata.errors import SetupError

# 9p and virtiofs are left out: sandboxes and virtual machines mount local disks through them.
_NETWORK = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs",
        "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "smbfs",
    }
)  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")


def find_file_system(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds ``path``, from the text of a mountinfo table."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split()
        if not dash or len(fields) < 5:
            continue
        point = Path(fields[4].replace("\\040", " "))
        # A later mount on the same point hides the earlier one.
        if path.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), after.split()[0])
    return best[1] if best else None


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """Raise when ``path`` is on a network file system."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text()
        except OSError:
            return
    kind = find_file_system(path.resolve(), mounts)
    if kind in _NETWORK:
        raise SetupError(
            f"the ledger was not opened; expected a local disk, found {kind} under {path}",
            state="nothing was written",
            hint="keep the ledger on a local disk, or use a PostgreSQL ledger",
            file_system=kind,
        )
