"""What all packages share: the facts of the project, archives that are the same each time, the pages of the program."""

import argparse
import gzip
import os
import struct
import subprocess
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT", "LICENSE-UNICODE")
SUMMARY = "One binary between an AI agent and its MCP servers: the agent writes one script instead of calling tools one by one"


class Failure(Exception):
    """Why a package cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Project:
    """What the manifests say."""

    version: str
    licence: str
    repository: str | None
    sbom: bytes | None
    level: int  # Of compression, 1 to 9, or BEST.

    @classmethod
    def read(cls, sbom: Path | None, level: int) -> "Project":
        package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
        try:
            bill = sbom.read_bytes() if sbom else None
        except OSError as error:
            raise Failure(f"{sbom}: {error.strerror}") from error
        return cls(package["version"], package["license"], package.get("repository"), bill, level)

    @property
    def urls(self) -> dict[str, str]:
        return {"Repository": self.repository} if self.repository else {}


def epoch() -> int:
    """The time of all files: 1980-01-01 is the first one that zip has."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))


@dataclass(frozen=True)
class File:
    """A file, folder (`data` is None) or link of an archive."""

    path: str
    data: bytes | None
    mode: int = 0o644
    owner: int = 0
    link: str | None = None


def tar_gz(files: list[File], level: int) -> bytes:
    """A compressed archive; folders must be listed, if they matter."""
    raw = BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            info = tarfile.TarInfo(file.path)
            info.mode, info.mtime, info.uid, info.gid = file.mode, epoch(), file.owner, file.owner
            if file.link is not None:
                info.type, info.linkname = tarfile.SYMTYPE, file.link
            elif file.data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(file.data)
            archive.addfile(info, BytesIO(file.data or b""))
    return compressed(raw.getvalue(), level)


# As small as deflate can be, a minute for 30 MB: Zopfli.
BEST = 10


def add_compression(parser: argparse.ArgumentParser) -> None:
    """The options for how well a command compresses."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", dest="level", action="store_const", const=1, default=9, help="compress less, for tests")
    group.add_argument("--best", dest="level", action="store_const", const=BEST, help="compress as well as deflate can, for releases (pip install zopfli)")


def compressed(data: bytes, level: int = 9) -> bytes:
    """In the format of gzip."""
    if level < BEST:
        return gzip.compress(data, level, mtime=0)
    return b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + zopfli(data) + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def zopfli(data: bytes) -> bytes:
    """Raw deflate (RFC 1951)."""
    try:
        from zopfli import zlib as format
    except ImportError as error:
        raise Failure("--best needs a package of Python: pip install zopfli") from error
    # Without the header and the checksum of zlib (RFC 1950).
    return format.compress(data)[2:-4]


def licences(names: Iterable[str] = LICENCES) -> list[tuple[str, bytes]]:
    return [(name, (ROOT / name).read_bytes()) for name in names]


def readme() -> str:
    return (HERE / "README.md").read_text()


def pages(program: Path) -> list[tuple[str, bytes]]:
    """The man pages of all commands, by their names. The program writes them."""
    with tempfile.TemporaryDirectory() as folder:
        printed(program, "man", "--output", folder)
        return sorted((page.name, page.read_bytes()) for page in Path(folder).iterdir())


def printed(program: Path, *arguments: str) -> bytes:
    """What the program prints."""
    try:
        return subprocess.run([program.resolve(), *arguments], check=True, capture_output=True).stdout
    except OSError as error:
        raise Failure(f"{program} does not run here, so its pages cannot be made: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise Failure(f"{program} {' '.join(arguments)}: {error.stderr.decode(errors='replace').strip()}") from error
