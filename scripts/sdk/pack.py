"""Packs the SDKs for Python (wheel and sdist), Go (module zip) and Java (zip of the Maven project); the same sources give the same bytes.

Usage: pack.py [OUT], default .build/sdk, after `make sdk-tools`; prints the files.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The earliest time of a zip file. flit_core reads it from SOURCE_DATE_EPOCH.
EPOCH = 315532800
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def pack_python(out: Path) -> list:
    from flit_core import buildapi

    os.environ["SOURCE_DATE_EPOCH"] = str(EPOCH)
    os.chdir(ROOT / "sdk" / "python")
    return [buildapi.build_wheel(str(out)), buildapi.build_sdist(str(out))]


def pack_go(out: Path) -> list:
    """In the format of https://go.dev/ref/mod#zip-files."""
    folder = ROOT / "sdk" / "go"
    module = re.search(r"^module (\S+)$", (folder / "go.mod").read_text(), re.MULTILINE)[1]
    version = re.search(r'^const Version = "(.+)"$', (folder / "signer.go").read_text(), re.MULTILINE)[1]
    return [write_zip(out / f"proofgate-go-{version}.zip", folder, f"{module}@v{version}")]


def pack_java(out: Path) -> list:
    folder = ROOT / "sdk" / "java"
    version = re.search(r"^  <version>(.+)</version>$", (folder / "pom.xml").read_text(), re.MULTILINE)[1]
    name = f"proofgate-java-{version}"
    return [write_zip(out / f"{name}.zip", folder, name, without=("src/test/", "target/"))]


def write_zip(target: Path, folder: Path, prefix: str, without: tuple = ()) -> str:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder).as_posix()
            if name.startswith(without):
                continue
            entry = zipfile.ZipInfo(f"{prefix}/{name}", ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return target.name


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build" / "sdk").resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in pack_go(out) + pack_java(out) + pack_python(out):
        print(out / name)


main()
