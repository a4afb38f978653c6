"""Make ``docs/benchmarks.md`` of the kept results: the targets first, then each benchmark's own report."""

from __future__ import annotations

import importlib
import json
from typing import Any

import targets
from measuring import HERE, RESULTS, machine_line

PAGE = HERE.parent / "docs" / "benchmarks.md"
SUBJECTS = {
    "append": "Append and reopen",
    "size": "File size",
    "growth": "Growth with the recorded history",
    "grep": "Search",
    "verify": "Verify",
    "imports": "Import",
    "startup": "Start-up",
    "door": "The door",
}
FLAG = {"default": "", "quick": " --quick", "full": " --full", "tiny": " --tiny"}
OPENING = """<!-- Written by benchmarks/render.py from benchmarks/results: change those. -->

# Benchmarks

One command a subject, the same work for every contestant: `python benchmarks/SUBJECT.py`, with `--quick` for seconds, `--full` for
as long as it takes, `--keep` to keep the result under `benchmarks/results`; `python benchmarks/render.py` then writes this page.
Absolute figures are of the machine named under each table. Contestants take turns, so what holds elsewhere are the ratios and the
growth exponents. Peers come from PyPI into environments of their own, made at first use (`benchmarks/contest.py`); ripgrep is taken
from the path. Conversations are made up, and the same on every run (`benchmarks/conversation.py`).

## Targets
"""


def kept() -> dict[str, dict[str, Any]]:
    """The kept results by benchmark, with what they were taken on."""
    return {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in SUBJECTS
        if (RESULTS / f"{name}.json").exists()
    }


def page() -> str:
    """The whole page."""
    found = kept()
    texts = [OPENING, targets.report({name: one["result"] for name, one in found.items()})]
    busy = [name for name, one in found.items() if one["machine"]["load"] > one["machine"]["cores"] / 2]
    if busy:
        texts.append(f"Taken on a machine that was busy with other work: {', '.join(busy)}.")
    for name, title in SUBJECTS.items():
        module = importlib.import_module(name)
        texts.append(f"## {title}\n\n{str(module.__doc__).strip()}")
        if name not in found:
            texts.append("Not measured yet.")
            continue
        one = found[name]
        texts.append(module.report(one["result"]))
        texts.append(
            f"`python benchmarks/{name}.py{FLAG[one['scale']]} --keep`, {one['taken']}: {machine_line(one['machine'])}."
        )
    return "\n\n".join(text.strip() for text in texts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
