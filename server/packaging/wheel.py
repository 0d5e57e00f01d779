"""A Python wheel that carries the program: `uvx codecall`, `pip install codecall`."""

import base64
import hashlib
import time
import zipfile
from pathlib import Path

from binary import Binary
from common import BEST, SUMMARY, Failure, Project, epoch, licences, readme, zopfli

ARCHITECTURES = {
    ("linux", "x64"): "x86_64",
    ("linux", "arm64"): "aarch64",
    ("darwin", "x64"): "x86_64",
    ("darwin", "arm64"): "arm64",
    ("win32", "x64"): "amd64",
    ("win32", "arm64"): "arm64",
}


def tags(binary: Binary) -> list[str]:
    """The platforms that the program runs on (PEP 600, PEP 656)."""
    cpu = ARCHITECTURES[binary.system, binary.cpu]
    major, minor = binary.needs
    match binary.system, binary.libc:
        case "linux", "glibc":
            # The oldest policy; a program that needs less runs where it holds.
            major, minor = max((2, 17), (major, minor))
            return [f"manylinux_{major}_{minor}_{cpu}"]
        case "linux", "musl":
            return [f"musllinux_{major}_{minor}_{cpu}"]
        case "linux", _:
            return [f"manylinux_2_17_{cpu}", f"musllinux_1_1_{cpu}"]
        case "darwin", _:
            # Since 11 the second number means nothing.
            return [f"macosx_{major}_{minor if major < 11 else 0}_{cpu}"]
        case "win32", _:
            return [f"win_{cpu}"]
        case system, _:
            raise Failure(f"there are no wheels for {system}")


def make(project: Project, binary: Binary, out: Path) -> list[Path]:
    name = f"codecall-{project.version}"
    content = [(f"{name}.data/scripts/{binary.file_name}", binary.data, 0o755)]
    if project.sbom:
        content.append((f"{name}.dist-info/sboms/codecall.cdx.json", project.sbom, 0o644))
    return [write(project, out, name, tags(binary), fields(project), readme(), content, licences())]


def write(project: Project, out: Path, name: str, platforms: list[str], fields: list[tuple[str, str]], page: str,
          content: list[tuple[str, bytes, int]], texts: list[tuple[str, bytes]], pure: bool = False) -> Path:
    """A wheel: its content, what describes it, and the digests of both."""
    info = f"{name}.dist-info"
    files = content + [(f"{info}/licenses/{licence}", text, 0o644) for licence, text in texts]
    fields = [("Metadata-Version", "2.4"), *fields, *[("License-File", licence) for licence, _ in texts]]
    fields += [("Description-Content-Type", "text/markdown")]
    described = "".join(f"{key}: {value}\n" for key, value in fields) + "\n" + page
    files.append((f"{info}/METADATA", described.encode(), 0o644))
    lines = ["Wheel-Version: 1.0", "Generator: codecall", f"Root-Is-Purelib: {str(pure).lower()}"]
    lines += [f"Tag: py3-none-{platform}" for platform in platforms]
    files.append((f"{info}/WHEEL", "".join(f"{line}\n" for line in lines).encode(), 0o644))
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data, _ in files) + f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode(), 0o644))
    path = out / f"{name}-py3-none-{'.'.join(platforms)}.whl"
    moment = time.gmtime(epoch())[:6]
    if project.level == BEST:
        # What zipfile deflates with cannot be chosen otherwise.
        zipfile._get_compressor = lambda *_: Zopfli()
    with zipfile.ZipFile(path, "w") as archive:
        for file, data, mode in files:
            entry = zipfile.ZipInfo(file, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=min(project.level, 9))
    return path


class Zopfli:
    """What `zipfile` compresses an entry with."""

    def __init__(self) -> None:
        self.data = bytearray()

    def compress(self, data: bytes) -> bytes:
        self.data += data
        return b""

    def flush(self) -> bytes:
        return zopfli(bytes(self.data))


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def fields(project: Project) -> list[tuple[str, str]]:
    fields = [("Name", "codecall"), ("Version", project.version), ("Summary", SUMMARY)]
    fields += [("License-Expression", f"({project.licence}) AND Unicode-3.0")]
    fields += [("Keywords", "mcp,agents,tools,code-mode,sandbox"), ("Requires-Python", ">=3.8")]
    fields += [("Provides-Extra", "model"), ("Requires-Dist", f'codecall-model=={project.version}; extra == "model"')]
    fields += [("Classifier", f"Programming Language :: {language}") for language in ("Rust", "JavaScript")]
    return fields + links(project)


def links(project: Project) -> list[tuple[str, str]]:
    return [("Project-URL", f"{label}, {url}") for label, url in project.urls.items()]
