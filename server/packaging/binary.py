"""For which system a program or a shared library is: read from its headers (ELF, Mach-O, PE)."""

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from common import Failure

CPUS = {"elf": {62: "x64", 183: "arm64"}, "macho": {0x01000007: "x64", 0x0100000C: "arm64"}, "pe": {0x8664: "x64", 0xAA64: "arm64"}}
# Libraries that every Linux has with its C library: glibc, and musl, which a linker and a distribution name differently. A binary
# that needs others works on the machine that built it only.
MUSL_LIBRARIES = ("libc.so", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1")
SYSTEM_LIBRARIES = (*MUSL_LIBRARIES, "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


@dataclass(frozen=True)
class Binary:
    """A program or a shared library, and what it needs."""

    path: Path
    system: str  # As Node names it: linux, darwin, win32.
    cpu: str  # As Node names it: x64, arm64.
    libc: str | None = None  # On Linux: glibc, musl, or static, which runs with either.
    needs: tuple[int, int] = (0, 0)  # The oldest glibc or macOS that it runs on.
    libraries: tuple[str, ...] = ()

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def file_name(self) -> str:
        return "codecall.exe" if self.system == "win32" else "codecall"

    @property
    def platform(self) -> str:
        """As npm packages have it in their names. A static program is for systems without glibc."""
        return f"{self.system}-{self.cpu}{'-musl' if self.libc in ('musl', 'static') else ''}"


def read(path: Path) -> Binary:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}; build it first, with `cargo build --profile dist`") from error
    try:
        if data[:4] == b"\x7fELF":
            return elf(path, data)
        if data[:4] == b"\xcf\xfa\xed\xfe":
            return macho(path, data)
        if data[:2] == b"MZ":
            return pe(path, data)
    except (struct.error, IndexError, ValueError) as error:
        raise Failure(f"{path}: the headers of the program cannot be read: {error}") from error
    raise Failure(f"{path} is not a program or a library for Linux, macOS or Windows of 64 bits")


def stripped(path: Path, folder: Path) -> Path:
    """A copy without symbols and debug information."""
    copy = folder / path.name
    shutil.copy2(path, copy)
    try:
        subprocess.run(["strip", copy], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"strip {path}: {error}") from error
    return copy


def cpu(path: Path, kind: str, machine: int) -> str:
    if found := CPUS[kind].get(machine):
        return found
    raise Failure(f"{path}: there are no packages for processor {machine:#x}; x86-64 and arm64 have some")


def text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def elf(path: Path, data: bytes) -> Binary:
    if data[4:6] != b"\x02\x01":
        raise Failure(f"{path} is not a little-endian program of 64 bits")
    machine = cpu(path, "elf", struct.unpack_from("<H", data, 18)[0])
    sections = struct.unpack_from("<Q", data, 40)[0]
    section_size, section_count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + index * section_size) for index in range(section_count)]
    libraries, versions = [], [(0, 0)]
    for _, kind, _, _, offset, size, link, count, _, _ in headers:
        strings = headers[link][4] if link < len(headers) else 0
        if kind == 6:  # SHT_DYNAMIC
            entries = struct.iter_unpack("<QQ", data[offset : offset + size])
            libraries = [text(data, strings + value) for tag, value in entries if tag == 1]  # DT_NEEDED
        elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed
            versions += glibc_versions(data, offset, count, strings)
    # A library has no interpreter that would say for which C library it is, so what it needs says it for programs too.
    if not libraries:
        return Binary(path, "linux", machine, "static")
    if odd := sorted(set(libraries) - set(SYSTEM_LIBRARIES)):
        raise Failure(f"{path} needs {', '.join(odd)}, which not every system has; link it statically")
    if not set(libraries).isdisjoint(MUSL_LIBRARIES):
        return Binary(path, "linux", machine, "musl", (1, 2), tuple(libraries))
    return Binary(path, "linux", machine, "glibc", max(versions), tuple(libraries))


def glibc_versions(data: bytes, at: int, count: int, strings: int) -> list[tuple[int, int]]:
    found = []
    for _ in range(count):
        _, names, _, first, following = struct.unpack_from("<HHIII", data, at)
        name = at + first
        for _ in range(names):
            _, _, _, offset, further = struct.unpack_from("<IHHII", data, name)
            version = text(data, strings + offset)
            if version.startswith("GLIBC_") and version[6].isdigit():
                major, minor = version[6:].split(".")[:2]
                found.append((int(major), int(minor)))
            name += further
        at += following
    return found


def macho(path: Path, data: bytes) -> Binary:
    machine, _, _, count = struct.unpack_from("<IIII", data, 4)
    at, oldest = 32, (11, 0)
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command in (0x24, 0x32):  # LC_VERSION_MIN_MACOSX, LC_BUILD_VERSION
            version = struct.unpack_from("<I", data, at + (8 if command == 0x24 else 12))[0]
            oldest = (version >> 16, version >> 8 & 0xFF)
        at += size
    return Binary(path, "darwin", cpu(path, "macho", machine), None, oldest)


def pe(path: Path, data: bytes) -> Binary:
    at = struct.unpack_from("<I", data, 60)[0]
    return Binary(path, "win32", cpu(path, "pe", struct.unpack_from("<H", data, at + 4)[0]))
