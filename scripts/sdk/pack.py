"""Packs the SDKs for Python (wheel and sdist) and Go (module zip); the same sources give the same bytes.

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
    name = f"proofgate-go-{version}.zip"
    with zipfile.ZipFile(out / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(f"{module}@v{version}/{path.relative_to(folder).as_posix()}", ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return [name]


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build" / "sdk").resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in pack_go(out) + pack_python(out):
        print(out / name)


main()
