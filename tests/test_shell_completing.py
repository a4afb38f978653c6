"""Completion and colours: what may stand at the end of a text, at a bounded cost, and what each stretch of one is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exarch_sql import Archive
from exarch_sql.door import Door
from exarch_sql.door.prelude import BUILTINS
from exarch_sql.door.verbs import FAMILIES, VERBS
from exarch_sql.shell import catalogue, completing, highlighting
from exarch_sql.shell.catalogue import ArchiveCatalogue
from exarch_sql.shell.commands import Commands
from exarch_sql.shell.completing import complete
from exarch_sql.shell.core import Shell
from exarch_sql.shell.prompt import candidates
from exarch_sql.shell.view import LogView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exarch_sql.shell.catalogue import Offer, Sort


class Known:
    """A catalogue of a few things; it says what ids were asked for."""

    def names(self) -> list[str]:
        """Two names."""
        return ["found", "rows"]

    def logs(self) -> list[Offer]:
        """No logs."""
        return []

    def ids(self, sort: Sort, end: Literal["from", "to"], digits: str) -> list[Offer]:
        """One id that begins so, labelled with the question."""
        return [(f"{digits}7", f"{sort} {end}")]


def offered(text: str) -> list[str]:
    """What the text may become, without the text."""
    return [offer.text for offer in complete(text, Known())]


TAGS_OF = {family: [f"`{tag}" for tag in verbs] for family, verbs in FAMILIES.items()}


class TestPlaces:
    """What is offered depends on the place, which is read off the door's own tokens."""

    @pytest.mark.parametrize(
        ("text", "offers"),
        [
            ("exarch-c", ["exarch-context "]),
            ("exarch-t", ["exarch-transcript "]),
            ("let x = exarch-c", ["exarch-context "]),
            ("`survey; exarch-c", ["exarch-context "]),
            ("{ exarch-c", ["exarch-context "]),
            ("!{exarch-c", ["exarch-context "]),
            ("{ |x| exarch-c", ["exarch-context "]),
            ('"is !{exarch-c', ["exarch-context "]),
            ("fou", ["found "]),
            ("re", ["re-match ", "return "]),
            ("{ |x| length `te", ["`text"]),
            ("`sur", ["`survey"]),
            ("exarch-context `e", ["`evict ["]),
            ("exarch-context `g", []),
            ("exarch-transcript `g", ["`grep ["]),
            ("`evict [", ["from: ", "to: ", "note: "]),
            ("`evict [from: 1, ", ["to: ", "note: "]),
            ("`evict [from: 1, to: 2, note: 'x', ", []),
            ("`evict [f", ["from: "]),
            ("`grep [pattern: 'x', ", ["turns: "]),
            ("`grep [pattern: 'x', turns: `", ["`all", "`only ["]),
            ("exarch-transcript `read [", ["turns: "]),
            ("$", ["$found", "$rows"]),
            ("length $f", ["$found"]),
            ('"$f', ["$found"]),
            ("map { |hit row| $h", ["$hit"]),
            ("let all = 1; $a", ["$all"]),
            ("$found[tota", ["total", "total-bytes"]),
            ("$found[hits][0][l", ["label", "line", "location"]),
            ("equal $r[location] `resi", ["`resident"]),
            ("case $p [`tex", ["`text: { |p| "]),
            ("case $p [`text: { |t| $t[con", ["content", "content-type"]),
            ("explain fil", ["filter"]),
            ("explain exarch-c", ["exarch-context"]),
            ("let x", []),
            ("'exarch-c", []),
            ("#'exarch-c", []),
            ('"exarch-c', []),
            ("# exarch-c", []),
            ("`survey # `s", []),
            ("`read [turns: [1] # `s", []),
            ("{ |exa", []),
            ("~ exarch-c", []),
            ("length exarch-c", []),
            ("`survey", []),
        ],
    )
    def test_a_text_and_its_offers(self, text: str, offers: list[str]) -> None:
        """In the order in which they are offered."""
        assert [offer for offer in offered(text) if offer in offers or not offers] == offers
        assert len(offered(text)) == len(offers)

    def test_nothing_typed_offers_all_that_may_begin_a_line(self) -> None:
        """Both families, what is bound, and every function."""
        assert {*FAMILIES, "found", "rows", *BUILTINS} < {offer.strip() for offer in offered("")}
        assert [offer.removesuffix(" [") for offer in offered("`")] == [f"`{tag}" for tag in VERBS]
        for family, tags in TAGS_OF.items():
            assert [offer.removesuffix(" [") for offer in offered(f"{family} ")] == tags

    @pytest.mark.parametrize(
        ("text", "question"),
        [
            ("`evict [from: ", "context from"),
            ("`evict [from: 4", "context from"),
            ("`evict [from: 4, to: ", "context to"),
            ("exarch-context `evict [note: 'x', to: 4", "context to"),
            ("`under [from: ", "residues from"),
            ("`under [from: 1, to: 4", "residues to"),
            ("`read [turns: [", "turns from"),
            ("`read [turns: [1, 2, 4", "turns from"),
            ("`read [turns: !{range ", "turns from"),
            ("`read [turns: !{range 41 4", "turns from"),
            ("`grep [pattern: 'x', turns: [", "turns from"),
            ("`grep [pattern: 'x', turns: `only [4", "turns from"),
            ("range 4", "turns from"),
        ],
    )
    def test_ids_are_offered_where_a_turn_is_named(self, text: str, question: str) -> None:
        """Of the sort that the verb takes there, with their labels."""
        (offer,) = complete(text, Known())

        assert offer.text == "47"[offer.length == 0 :]
        assert offer.about == question

    @pytest.mark.parametrize(
        "text", ["4", "[4", "take 4", "`evict [note: 4", "`grep [pattern: 4", "`read [turns: 4", "$x[4", "$[4", "[a: 4",
                 "`read [turns: [" + "9" * 20]
    )  # fmt: skip
    def test_other_numbers_are_the_writers_own(self, text: str) -> None:
        """No turn is named there, or none can be."""
        assert offered(text) == []

    def test_labels_are_made_visible_and_cut(self, tmp_path: Path) -> None:
        """They are shown beside the offer, on a terminal."""
        with Archive.open(tmp_path / "a.exarch") as archive:
            archive.trunk.prompt("\x1b[31m\u202e" + "x" * 200)
        with Shell(str(tmp_path / "a.exarch")) as shell:
            (offer,) = candidates(shell, "`read [turns: [")

        assert offer.about.startswith(r"\x1b[31m\u202exxx")
        assert len(offer.about) <= 60

    @given(st.text(alphabet=st.sampled_from("`$![]{}|:,;'\"# \n.-019exarchfom()=&\\~\u202e\ud800é"), max_size=60))
    @example("`evict [from: " * 20)
    @example("[" * 80)
    @example("\u0663")
    def test_no_text_is_too_odd_and_offers_go_on_from_it(self, text: str) -> None:
        """Nothing is raised, and every offer keeps what was typed."""
        for offer in complete(text, Known()):
            assert offer.length <= len(text)
            assert offer.text.startswith(text[len(text) - offer.length :])
            assert len(offer.text) > offer.length

    def test_a_long_text_has_no_offers(self) -> None:
        """It would be read anew at each key."""
        assert offered("`survey;" * (completing.COMPLETED_CHARS // 8 + 1)) == []


class TestCatalogue:
    """Ids and logs come from the archive, few of them, within a time that no archive exceeds."""

    @pytest.fixture
    def view(self, lawful_file: Path, tmp_path: Path) -> Iterator[LogView]:
        """The lawful archive's trunk."""
        copy = Path(shutil.copy(lawful_file, tmp_path / "a.exarch"))
        with LogView(str(copy), "trunk") as view:
            yield view

    @pytest.mark.parametrize("log", ["trunk", "child", "heir", "grandchild", "owing", "empty"])
    def test_it_offers_what_the_log_answers(self, view: LogView, log: str) -> None:
        """Items of the context by either end, residues standing or lying, every turn with its label."""
        view.turn_to(log)
        known = ArchiveCatalogue(view)
        index = view.index()

        survey = view.survey().rows
        assert known.ids("context", "from", "") == [(str(row.from_), row.label) for row in survey]
        assert known.ids("context", "to", "") == [(str(row.to), row.label) for row in survey]
        residues = {str(row.from_) for row in index if row.kind == "residue"}
        assert {offer for offer, _ in known.ids("residues", "from", "")} == residues
        turns = sorted((row.from_, row.label) for row in index if row.kind != "residue")
        assert known.ids("turns", "from", "") == [(str(turn), label) for turn, label in turns]
        assert [offer for offer, _ in known.ids("turns", "from", "1")] == [
            str(turn) for turn, _ in turns if str(turn).startswith("1")
        ]
        assert ("child", "a fork") in known.logs()

    def test_in_the_past_it_offers_what_was_there(self, view: LogView) -> None:
        """No turn and no residue recorded later."""
        view.look_at(8)
        index = view.index()
        known = ArchiveCatalogue(view)

        assert {offer for offer, _ in known.ids("turns", "from", "")} == {
            str(r.from_) for r in index if r.from_ == r.to
        }
        assert known.ids("residues", "from", "") == []

    def test_there_are_few_whatever_the_archive_holds(self, tmp_path: Path) -> None:
        """The lowest that begin with what was typed; decimals of any length are found."""
        with Archive.open(tmp_path / "a.exarch", durability="off") as archive, archive.batch():
            for _ in range(1500):
                archive.trunk.prompt("ask")
                archive.trunk.assistant("answer")
        with LogView(str(tmp_path / "a.exarch"), "trunk") as view:
            known = ArchiveCatalogue(view)
            for sort in ("context", "turns"):
                low, high = known.ids(sort, "from", ""), known.ids(sort, "to", "29")  # type: ignore[arg-type]
                assert [offer for offer, _ in low] == [str(turn) for turn in range(1, catalogue.OFFERS + 1)]
                tens = [str(turn) for turn in range(290, 300)]
                assert [offer for offer, _ in high] == ["29", *tens, *[str(turn) for turn in range(2900, 2939)]]
            assert known.ids("turns", "from", "3001") == []
            assert known.ids("turns", "from", "0") == []

    def test_what_would_take_too_long_offers_nothing(self, view: LogView, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor does what cannot be asked at all: a prompt must not fail because completion does."""
        known = ArchiveCatalogue(view)
        monkeypatch.setattr(catalogue, "SECONDS", 1e-9)
        assert known.ids("context", "from", "") == []
        monkeypatch.undo()
        view.path += ".gone"
        assert known.ids("turns", "from", "") == []
        assert known.logs() == []


class TestCommandLines:
    """Of a dot command its name, then what it takes."""

    @pytest.fixture
    def shell(self, lawful_file: Path) -> Iterator[Shell]:
        """A shell on the lawful archive, with a name bound."""
        with Shell(str(lawful_file)) as shell:
            shell.feed("let mine = 1")
            yield shell

    @pytest.mark.parametrize(
        ("text", "offers"),
        [
            (".", [f".{name}" for name in Commands.names()]),
            (".re", [".render"]),
            (".mode ", ["ral", "table", "json", "nl"]),
            (".mode t", ["table"]),
            (".log gr", ["grandchild"]),
            (".at ", ["now"]),
            (".help ex", ["explain"]),
            (".render openai-c", ["openai-chat"]),
            (".explain exarch-c", ["exarch-context "]),
            (".explain $m", ["$mine"]),
            ("$m", ["$mine"]),
            (".sql SEL", []),
            (".quit ", []),
            (".frob x", []),
        ],
    )
    def test_a_text_and_its_offers(self, shell: Shell, text: str, offers: list[str]) -> None:
        """A door line's are those of the door."""
        assert [offer.text for offer in candidates(shell, text)] == offers


class TestHighlighting:
    """Every stretch of a text has a role, and together they are the text."""

    @pytest.mark.parametrize(
        ("text", "roles"),
        [
            ("exarch-context `survey", [("command", "exarch-context"), ("tag", "`survey")]),
            ("let x = 1.5 # n", [("keyword", "let"), ("number", "1.5"), ("comment", "# n")]),
            ("[from: 41, 'a b': true]", [("field", "from"), ("number", "41"), ("text", "'a b'"), ("number", "true")]),
            ('"a $x b"', [("text", '"'), ("text", "a "), ("name", "$x"), ("text", " b"), ("text", '"')]),
            ("map { |h| take 3 $h[hits] }", [("command", "map"), ("command", "take"), ("number", "3"), ("name", "$h")]),
            ("# a\n# b\nlength x", [("comment", "# a"), ("comment", "# b"), ("command", "length")]),
            ("'open\nstring", [("text", "'open\nstring")]),
            ("#'open", [("text", "#'open")]),
            ("`survey | length", [("tag", "`survey"), ("error", "| length")]),
            ("let x = [1, 2", [("keyword", "let"), ("number", "1"), ("number", "2")]),
            ("", []),
        ],
    )
    def test_a_text_and_its_roles(self, text: str, roles: list[tuple[str, str]]) -> None:
        """What is plain aside."""
        assert [fragment for fragment in highlighting.fragments(text) if fragment[0]] == roles

    @given(st.text(alphabet=st.sampled_from("`$![]{}|:,;'\"# \n.-019exarchfom()=&\\~\u202e\ud800é\r"), max_size=80))
    def test_the_stretches_are_the_text(self, text: str) -> None:
        """Nothing is lost or raised, whatever is typed."""
        assert "".join(part for _, part in highlighting.fragments(text)) == text

    def test_an_answer_is_never_an_error(self, lawful_file: Path) -> None:
        """A literal is a text of the language."""
        with Archive.open(lawful_file, readonly=True) as archive:
            for line in ("`survey", "`index", "`read [turns: [1, 2, 3]]", "{ |x| $x }"):
                text = Door(archive.trunk).run(line).text
                assert "error" not in {role for role, _ in highlighting.fragments(text)}

    def test_a_long_text_is_left_plain(self) -> None:
        """It would be read anew at each key."""
        text = "`survey;" * (highlighting.HIGHLIGHTED_CHARS // 8 + 1)

        assert highlighting.fragments(text) == [("", text)]
