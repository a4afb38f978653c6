"""The README is true: its tour prints what it says, its Python runs, its links lead somewhere."""

import doctest
import os
import re
from pathlib import Path

import pytest
import tour


def test_the_tour_prints_what_the_readme_says() -> None:
    """Regenerate with ``python tests/tour.py`` when the output changes on purpose."""
    text = tour.README.read_text(encoding="utf-8")

    assert tour.run(text) == text
    assert text.count("$ exarch-sql") >= 8


def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line and every answer of the pycon block."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```pycon\n(.*?)```", tour.README.read_text(encoding="utf-8"), re.S)
    examples = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
    runner = doctest.DocTestRunner()

    said: list[str] = []
    results = runner.run(examples, out=said.append)

    assert results.failed == 0, "".join(said)
    assert results.attempted > 15


@pytest.mark.parametrize("page", [*sorted(tour.ROOT.glob("docs/*.md")), tour.README], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A page named is a page there."""
    text = page.read_text(encoding="utf-8")

    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert os.path.exists(page.parent / target), f"{page.name} links to {target}"
