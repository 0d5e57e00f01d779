"""Checks the wheels in a folder, and installs the one for this machine into an empty environment: `python wheel.py FOLDER`.

The environment has no Rust and no other package. Each wheel must be for all versions of CPython from 3.10, and typed.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "codecall_agentscript"
FILES = {"agentscript/__init__.py", "agentscript/_native.pyi", "agentscript/py.typed"}
SCRIPT = """
import agentscript

def double(n: int) -> int:
    return n * 2

print(agentscript.run("return await double({ n: 21 })", tools=[double]).result)
"""


def check(wheel: Path) -> None:
    name, _version, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == (NAME, "cp310", "abi3"), wheel.name
    assert platform != "any" and not platform.startswith("linux_"), f"{wheel.name} does not say on which systems it runs"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert FILES <= names, f"{wheel.name} lacks {FILES - names}"
    modules = [path for path in names if path.startswith("agentscript/_native.") and not path.endswith(".pyi")]
    # Its name differs between systems.
    assert len(modules) == 1, f"{wheel.name} has {modules}"
    licences = {path.rsplit("/", 1)[-1] for path in names if ".dist-info/licenses/" in path}
    assert licences == {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-UNICODE"}, f"{wheel.name} has the licences {licences}"
    print(f"    {wheel.name}: {wheel.stat().st_size} bytes")


def install(wheels: Path, environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    binaries = environment / ("Scripts" if sys.platform == "win32" else "bin")
    python = binaries / "python"
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--find-links", wheels]
    clean = {"PATH": str(binaries)}
    subprocess.run([python, "-m", "pip", "install", *options, NAME], check=True, env=clean)
    result = subprocess.run([python, "-c", SCRIPT], check=True, env=clean, cwd=environment, capture_output=True, text=True)
    assert result.stdout.strip() == "42", result.stdout


def main() -> None:
    folder = Path(sys.argv[1])
    wheels = sorted(folder.glob(f"{NAME}-*.whl"))
    assert wheels, f"{folder} has no wheels"
    for wheel in wheels:
        check(wheel)
    with tempfile.TemporaryDirectory() as environment:
        install(folder, Path(environment))
    print(f"{len(wheels) + 1} cases, 0 problems")


if __name__ == "__main__":
    main()
