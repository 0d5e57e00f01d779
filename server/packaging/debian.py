"""A Debian package: the program, its man pages, completions for shells, and a service of systemd that is off."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from binary import Binary
from common import HERE, Failure, Project, compressed, epoch, licences, pages, printed

ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/codecall",
    "zsh": "usr/share/zsh/vendor-completions/_codecall",
    "fish": "usr/share/fish/vendor_completions.d/codecall.fish",
}


def make(project: Project, binary: Binary, out: Path) -> list[Path]:
    if not shutil.which("dpkg-deb"):
        raise Failure("there is no dpkg-deb, which makes Debian packages: apt-get install dpkg, or leave out deb")
    if binary.libc == "musl":
        raise Failure("a Debian package needs a program that is linked against glibc, or statically")
    architecture = ARCHITECTURES[binary.cpu]
    path = out / f"codecall_{project.version}-1_{architecture}.deb"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        files = contents(project, binary)
        for name, (data, mode) in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(mode)
        installed = sum(len(data) for data, _ in files.values()) // 1024
        control = root / "DEBIAN/control"
        control.parent.mkdir()
        control.write_text(fields(project, binary, architecture, installed))
        for entry in [root, *root.rglob("*")]:
            if entry.is_dir():
                entry.chmod(0o755)
            os.utime(entry, (epoch(), epoch()))
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{min(project.level, 9)}", "--build", str(root), str(path)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
        made = subprocess.run(command, capture_output=True, text=True, env=environment)
        if made.returncode != 0:
            raise Failure(f"dpkg-deb: {made.stderr.strip()}")
    return [path]


def contents(project: Project, binary: Binary) -> dict[str, tuple[bytes, int]]:
    copyright = "\n\n".join(data.decode() for _, data in licences())
    files = {"usr/bin/codecall": (binary.data, 0o755)}
    files |= {f"usr/share/man/man1/{name}.gz": (compressed(data), 0o644) for name, data in pages(binary.path)}
    files |= {path: (printed(binary.path, "completions", shell), 0o644) for shell, path in COMPLETIONS.items()}
    files["usr/lib/systemd/system/codecall.service"] = ((HERE / "debian/codecall.service").read_bytes(), 0o644)
    files["usr/share/doc/codecall/copyright"] = (copyright.encode(), 0o644)
    if project.sbom:
        files["usr/share/doc/codecall/sbom.cdx.json.gz"] = (compressed(project.sbom), 0o644)
    return files


def fields(project: Project, binary: Binary, architecture: str, installed: int) -> str:
    major, minor = binary.needs
    depends = f"Depends: libc6 (>= {major}.{minor}), libgcc-s1\n" if binary.libc == "glibc" else ""
    homepage = f"Homepage: {project.repository}\n" if project.repository else ""
    return f"""Package: codecall
Version: {project.version}-1
Architecture: {architecture}
Maintainer: CodeCall contributors <maintainers@codecall.invalid>
Installed-Size: {installed}
{depends}Recommends: ca-certificates
Section: net
Priority: optional
{homepage}Description: one binary between an AI agent and its MCP servers
 The agent writes one short script in a safe subset of JavaScript, which
 calls tools of many MCP servers, instead of calling them one by one. The
 interpreter counts each step, call and byte.
 .
 The service codecall.service serves over HTTP what
 /etc/codecall/codecall.toml configures. It is not started by the
 installation.
"""
