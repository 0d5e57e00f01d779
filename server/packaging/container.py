"""The files of a container, and what builds an image of them: `docker build target/packages/container`.

The files are the program, the libraries it needs (none, if it is linked statically), certificates of authorities, and
folders for its data. There is no shell and no other program; MCP servers are reached over HTTP, or belong to an image
that is made from this one.
"""

import re
import shutil
import subprocess
from pathlib import Path

from binary import Binary
from common import HERE, Failure, File, Project, licences, tar_gz

ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}
USER = 65532
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
FOLDERS = ("dev", "etc", "etc/codecall", "etc/ssl", "etc/ssl/certs", "proc", "sys", "usr", "usr/bin", "usr/share", "usr/share/licenses", "usr/share/licenses/codecall", "var", "var/lib")


def make(project: Project, binary: Binary, out: Path) -> list[Path]:
    if not CERTIFICATES.is_file():
        raise Failure(f"{CERTIFICATES} is not there, and a container needs it: apt-get install ca-certificates")
    files = [File(path, None, 0o755) for path in FOLDERS]
    files += [File("tmp", None, 0o1777), File("var/lib/codecall", None, 0o700, USER)]
    files += [
        File("etc/passwd", f"codecall:x:{USER}:{USER}::/var/lib/codecall:/nonexistent\n".encode()),
        File("etc/group", f"codecall:x:{USER}:\n".encode()),
        File("etc/nsswitch.conf", b"hosts: files dns\n"),
        File(str(CERTIFICATES).lstrip("/"), CERTIFICATES.read_bytes()),
        File("usr/bin/codecall", binary.data, 0o755),
    ]
    files += [File(f"usr/share/licenses/codecall/{name}", data) for name, data in licences()]
    files += libraries(binary)
    folder = out / "container"
    folder.mkdir(exist_ok=True)
    archive = folder / f"rootfs-{ARCHITECTURES[binary.cpu]}.tar.gz"
    archive.write_bytes(tar_gz(files, project.level))
    shutil.copyfile(HERE / "container/Containerfile", folder / "Containerfile")
    return [archive, folder / "Containerfile"]


def libraries(binary: Binary) -> list[File]:
    """The loader and the libraries that it finds, where it finds them."""
    if binary.libc == "static":
        return []
    listed = subprocess.run(["ldd", binary.path], capture_output=True, text=True)
    # `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`
    paths = re.findall(r"(/\S+) \(0x", listed.stdout)
    if listed.returncode != 0 or not paths:
        raise Failure(f"ldd {binary.path}: {(listed.stdout + listed.stderr).strip()}; build on the system that the program is for")
    folders = {str(parent) for path in paths for parent in Path(path.lstrip("/")).parents if str(parent) != "."}
    found = [File(folder, None, 0o755) for folder in sorted(folders)]
    return found + [File(path.lstrip("/"), Path(path).read_bytes(), 0o755) for path in paths]
