"""Write the software bill of materials of a wheel, in CycloneDX's JSON: what ``pip install`` of it installs.

The wheel goes into a new environment, and cyclonedx-bom, in another one, lists what came with it. The same packages
give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def write_bill(wheel: Path, target: Path) -> None:
    """Install a wheel, and write what is then there."""
    pip = [sys.executable, "-m", "pip", "--python"]
    with tempfile.TemporaryDirectory() as folder:
        own, tool = Path(folder, "own"), Path(folder, "tool")
        for place, package in ((own, wheel), (tool, "cyclonedx-bom==7.5.0")):
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
            subprocess.run([*pip, program(place, "python"), "install", "--quiet", package], check=True)
        project = Path(__file__).parent.parent / "pyproject.toml"
        words = ["environment", "--pyproject", project, "--mc-type", "application", "--output-reproducible"]
        words += ["--output-format", "JSON", "--output-file", target, program(own, "python")]
        subprocess.run([program(tool, "cyclonedx-py"), *words], check=True)
    bill = json.loads(target.read_text(encoding="utf-8"))
    bill["metadata"]["component"]["version"] = wheel.name.split("-")[1]  # pyproject.toml has none
    target.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


def program(environment: Path, name: str) -> Path:
    """Return the path of a program of an environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


def main() -> None:
    """Parse the command line, and write the bill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("target", type=Path, help="the file to write, such as sbom.cdx.json")
    given = parser.parse_args()
    write_bill(given.wheel, given.target)


if __name__ == "__main__":
    main()
