"""npm packages: `codecall` starts the program, which is in the package of the platform, `@codecall/linux-x64` and so on.

Each package of a platform says for which system it is, and `codecall` lists all as optional: npm installs the one that
fits. Nothing runs when it is installed.
"""

import json
from pathlib import Path

from binary import Binary
from common import HERE, SUMMARY, File, Project, licences, readme, tar_gz

# What a release builds; `.github/workflows/release.yml` has the same.
PLATFORMS = ("linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl", "darwin-x64", "darwin-arm64", "win32-x64")


def make(project: Project, binary: Binary, out: Path) -> list[Path]:
    # A static program is for systems without glibc; the others take the one that is linked against it.
    musl = binary.libc in ("musl", "static")
    platform = f"{binary.system}-{binary.cpu}{'-musl' if musl else ''}"
    own = {
        **common(project, f"@codecall/{platform}", f"The program codecall for {platform}; install the package codecall"),
        "preferUnplugged": True,
        "files": ["bin"],
        "os": [binary.system],
        "cpu": [binary.cpu],
    }
    if binary.system == "linux":
        own["libc"] = ["musl" if musl else "glibc"]
    main = {
        **common(project, "codecall", SUMMARY),
        "keywords": ["mcp", "agents", "tools", "code-mode", "sandbox"],
        "bin": {"codecall": "bin/codecall.js"},
        "files": ["bin"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {f"@codecall/{name}": project.version for name in PLATFORMS},
        # The model of search by meaning, for those who install it.
        "peerDependencies": {"@codecall/model": project.version},
        "peerDependenciesMeta": {"@codecall/model": {"optional": True}},
    }
    launcher = (HERE / "npm/codecall.js").read_bytes()
    return [
        package(project, out / f"codecall-{platform}-{project.version}.tgz", own, [File(f"package/bin/{binary.file_name}", binary.data, 0o755)]),
        package(project, out / f"codecall-{project.version}.tgz", main, [File("package/bin/codecall.js", launcher, 0o755)]),
    ]


def common(project: Project, name: str, description: str) -> dict:
    about = {"name": name, "version": project.version, "description": description}
    about["license"] = f"({project.licence}) AND Unicode-3.0"
    if project.repository:
        about["repository"] = {"type": "git", "url": f"git+{project.repository}.git"}
    return about


def package(project: Project, path: Path, about: dict, files: list[File], page: str | None = None, texts: list[tuple[str, bytes]] | None = None) -> Path:
    manifest = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    head = [File("package/package.json", manifest.encode()), File("package/README.md", (page or readme()).encode())]
    head += [File(f"package/{name}", data) for name, data in texts or licences()]
    path.write_bytes(tar_gz(head + files, project.level))
    return path
