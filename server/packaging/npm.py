"""npm packages: `codecall` starts the program, which is in the package of the platform, `@codecall/linux-x64` and so on.

Each package of a platform says for which system it is, and `codecall` lists all as optional: npm installs the one that
fits. Nothing runs when it is installed. `bindings` makes the packages of the interpreter in the same way.
"""

import json
from pathlib import Path

from binary import Binary
from common import HERE, SUMMARY, Failure, File, Project, licences, readme, tar_gz

# What a release builds; `.github/workflows/release.yml` has the same.
PLATFORMS = ("linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl", "darwin-x64", "darwin-arm64", "win32-x64")


def make(project: Project, binary: Binary, out: Path) -> list[Path]:
    about = f"The program codecall for {binary.platform}; install the package codecall"
    program = File(f"package/bin/{binary.file_name}", binary.data, 0o755)
    main = {
        **common(project, "codecall", SUMMARY),
        "keywords": ["mcp", "agents", "tools", "code-mode", "sandbox"],
        "bin": {"codecall": "bin/codecall.js"},
        "files": ["bin"],
        "engines": {"node": ">=18"},
        "optionalDependencies": of_all_platforms(project, "@codecall/"),
        # The model of search by meaning, for those who install it.
        "peerDependencies": {"@codecall/model": project.version},
        "peerDependenciesMeta": {"@codecall/model": {"optional": True}},
    }
    launcher = (HERE / "npm/codecall.js").read_bytes()
    return [
        of_platform(project, binary, out, "@codecall/", about, {"files": ["bin"]}, program),
        package(project, out / f"codecall-{project.version}.tgz", main, [File("package/bin/codecall.js", launcher, 0o755)]),
    ]


def of_all_platforms(project: Project, prefix: str) -> dict[str, str]:
    """The packages that a main package lists as optional; `prefix` is their name without the platform."""
    return {f"{prefix}{name}": project.version for name in PLATFORMS}


def of_platform(project: Project, binary: Binary, out: Path, prefix: str, description: str, more: dict, file: File, page: str | None = None) -> Path:
    """The package of one platform, with one file."""
    name = f"{prefix}{binary.platform}"
    if binary.platform not in PLATFORMS:
        raise Failure(f"{binary.path}: {binary.platform} is not one of the platforms of npm.py: {', '.join(PLATFORMS)}")
    about = {**common(project, name, description), "preferUnplugged": True, **more, "os": [binary.system], "cpu": [binary.cpu]}
    if binary.system == "linux":
        about["libc"] = ["musl" if binary.platform.endswith("-musl") else "glibc"]
    return package(project, out / f"{file_name(name)}-{project.version}.tgz", about, [file], page)


def file_name(name: str) -> str:
    """The name of a package in the name of its file, as `npm pack` has it."""
    return name.removeprefix("@").replace("/", "-")


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
