"""Runs the console blocks of README.md and fills in, or compares, what they print. ``python tests/tour.py`` writes them anew."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def run(text: str) -> str:
    """The text with every console block's output as it is now, all run in one fresh folder."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "exarch_sql").symlink_to(ROOT / "exarch_sql")
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONUTF8": "1"}

        def block(found: re.Match[str]) -> str:
            lines = []
            for line in found[1].splitlines():
                if line.startswith("$ "):
                    done = subprocess.run(
                        ["bash", "-c", line[2:]],
                        cwd=folder,
                        env=environment,
                        capture_output=True,
                        text=True,
                        check=False,
                    )
                    lines += [line, *(part.rstrip() for part in done.stdout.rstrip("\n").splitlines())]
            return "```console\n" + "\n".join(lines) + "\n```"

        return BLOCK.sub(block, text)


if __name__ == "__main__":
    README.write_text(run(README.read_text(encoding="utf-8")), encoding="utf-8")
