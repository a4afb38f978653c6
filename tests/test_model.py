"""The plain model answers the worked examples of the pages, each reckoned by hand.

The model judges the product in ``test_stateful.py``; these tests judge the model. Their expected values are written
out, never computed with the model's own words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from model import Lineage, Refusal, Span, call, label_of, opening, reply, result, user, weigh

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = "trunk"
WITHDRAWN = "withdrawn"
RESIDENT = "resident"


def residue_message(span: Span, note: str | None) -> dict[str, Any]:
    """A stand-in for the rendered residue; 60 bytes of frame and its span and note."""
    return user(f"[{span[0]}-{span[1]} {note}]")


@pytest.fixture
def lineage() -> Lineage:
    """An empty lineage with a trunk."""
    return Lineage(residue_message)


def exchanges(lineage: Lineage, count: int, log: str = LOG) -> None:
    """``count`` prompts, each answered: turns 1 and 2, 3 and 4, and so on; the state is ready afterwards."""
    for number in range(count):
        lineage.prompt(log, user(f"ask {number}"))
        lineage.assistant(log, reply(f"answer {number}"))


def owe(lineage: Lineage, *call_ids: str, log: str = LOG) -> None:
    """A prompt and a reply that waits for the results of its calls."""
    lineage.prompt(log, user("do it"))
    lineage.assistant(log, reply("doing it", *(call(call_id) for call_id in call_ids)))


def spans(rows: list[Any]) -> list[Span]:
    """The spans of rows or items."""
    return [row.span for row in rows]


def places(lineage: Lineage, log: str = LOG) -> list[tuple[Span, str, Any]]:
    """Every item in index order with its kind and location."""
    return [(row.span, row.kind, row.location) for row in lineage.view(log).index()]


def refusal(operation: Any, *args: Any, **kwargs: Any) -> str:
    """The reason an operation is refused for; the lineage must stand as it was."""
    owner: Lineage = operation.__self__
    before = list(owner.records)
    with pytest.raises(Refusal) as caught:
        operation(*args, **kwargs)
    assert owner.records == before
    return caught.value.reason


def refusal_of(look: Callable[[], Any]) -> str:
    """The reason a look is refused for."""
    with pytest.raises(Refusal) as caught:
        look()
    return caught.value.reason


class TestSpansNest:
    """An eviction is a span: covering, holders and the frontier."""

    def test_an_eviction_leaves_one_residue_in_place_of_the_run(self, lineage: Lineage) -> None:
        """The residue stands where the run began; what it covers lies under its span."""
        exchanges(lineage, 3)
        lineage.evict(LOG, 2, 4, "middle")
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 4), (5, 5), (6, 6)]
        assert places(lineage) == [
            ((1, 1), "own", RESIDENT),
            ((2, 4), "residue", RESIDENT),
            ((2, 2), "own", (2, 4)),
            ((3, 3), "own", (2, 4)),
            ((4, 4), "own", (2, 4)),
            ((5, 5), "own", RESIDENT),
            ((6, 6), "own", RESIDENT),
        ]

    def test_a_larger_run_covers_residues_and_what_lay_under_them_stays_there(self, lineage: Lineage) -> None:
        """The holder is the smallest span, so the stamp of the first eviction never changes."""
        exchanges(lineage, 3)
        lineage.evict(LOG, 2, 3, "inner")
        lineage.evict(LOG, 5, 5, "leaf")
        lineage.evict(LOG, 1, 5, "outer")
        view = lineage.view(LOG)
        assert spans(view.survey()) == [(1, 5), (6, 6)]
        assert spans(view.under((1, 5))) == [(1, 1), (2, 3), (4, 4), (5, 5)]
        assert [row.kind for row in view.under((1, 5))] == ["own", "residue", "own", "residue"]
        assert spans(view.under((2, 3))) == [(2, 2), (3, 3)]
        assert spans(view.under((5, 5))) == [(5, 5)]

    def test_the_same_span_again_rewrites_the_note(self, lineage: Lineage) -> None:
        """An equal span covers the earlier residue; in the index the later one comes first."""
        exchanges(lineage, 2)
        lineage.evict(LOG, 1, 2, "first words")
        lineage.evict(LOG, 1, 2, "second words")
        view = lineage.view(LOG)
        assert [(row.span, row.label) for row in view.survey()] == [
            ((1, 2), "second words"),
            ((3, 3), "ask 1"),
            ((4, 4), "answer 1"),
        ]
        assert [(row.label, row.location) for row in view.index()][:2] == [
            ("second words", RESIDENT),
            ("first words", (1, 2)),
        ]
        assert [row.label for row in view.under((1, 2))] == ["first words", "ask 0", "answer 0"]

    def test_a_run_that_enters_a_residue_is_refused_from_both_sides(self, lineage: Lineage) -> None:
        """L5: no residue has r.from < from <= r.to or r.from <= to < r.to."""
        exchanges(lineage, 4)
        lineage.evict(LOG, 3, 6, "together")
        assert refusal(lineage.evict, LOG, 1, 3, "n") == "misaligned"
        assert refusal(lineage.evict, LOG, 1, 5, "n") == "misaligned"
        assert refusal(lineage.evict, LOG, 4, 8, "n") == "misaligned"
        assert refusal(lineage.evict, LOG, 6, 8, "n") == "misaligned"
        lineage.evict(LOG, 1, 6, "whole")
        assert spans(lineage.view(LOG).survey()) == [(1, 6), (7, 7), (8, 8)]

    def test_the_note_of_a_covered_residue_cannot_be_rewritten(self, lineage: Lineage) -> None:
        """The outer residue fails the alignment test, whichever end the two share."""
        exchanges(lineage, 4)
        lineage.evict(LOG, 3, 4, "inner")
        lineage.evict(LOG, 3, 6, "outer")
        assert refusal(lineage.evict, LOG, 3, 4, "again") == "misaligned"
        assert refusal(lineage.evict, LOG, 4, 4, "leaf") == "misaligned"

    def test_a_withdrawn_run_may_lie_inside_a_span_and_stays_withdrawn(self, lineage: Lineage) -> None:
        """Withdrawal dominates: the leaf is under no residue and the residue covers the hole."""
        exchanges(lineage, 3)
        lineage.rewind(LOG, 3)
        exchanges(lineage, 1)
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 2), (7, 7), (8, 8)]
        lineage.evict(LOG, 2, 7, "over the hole")
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 7), (8, 8)]
        assert spans(lineage.view(LOG).under((2, 7))) == [(2, 2), (7, 7)]
        assert [location for span, _, location in places(lineage) if span in ((3, 3), (6, 6))] == [WITHDRAWN] * 2

    def test_an_end_must_be_recorded_standing_and_in_order(self, lineage: Lineage) -> None:
        """Each refusal has its own reason."""
        exchanges(lineage, 2)
        lineage.rewind(LOG, 3)
        assert refusal(lineage.evict, LOG, 2, 1, "n") == "inverted"
        assert refusal(lineage.evict, LOG, 1, 9, "n") == "not-recorded"
        assert refusal(lineage.evict, LOG, 0, 1, "n") == "not-recorded"
        assert refusal(lineage.evict, LOG, 1, 3, "n") == "withdrawn"

    def test_the_whole_context_may_leave_at_a_ready_boundary(self, lineage: Lineage) -> None:
        """The residue stands alone, and the state stays ready because the newest turn has departed."""
        exchanges(lineage, 1)
        lineage.evict(LOG, 1, 2, "all of it")
        assert spans(lineage.view(LOG).survey()) == [(1, 2)]
        assert lineage.view(LOG).state == "ready"
        assert refusal_of(lambda: lineage.view(LOG).under((1, 1))) == "no-residue"
        lineage.prompt(LOG, user("next"))
        assert spans(lineage.view(LOG).survey()) == [(1, 2), (3, 3)]

    def test_a_note_is_one_line_of_1_to_240_bytes(self, lineage: Lineage) -> None:
        """L9: bytes, not characters."""
        exchanges(lineage, 1)
        for note in ("", "x" * 241, "é" * 121, "a\nb", "a\rb", "a\u2028b"):
            assert refusal(lineage.evict, LOG, 1, 1, note) == "note"
        lineage.evict(LOG, 1, 1, "é" * 120)


class TestTheWorkInHand:
    """The state machine and the unclosed turn."""

    def test_ids_rise_by_one_and_are_never_reused(self, lineage: Lineage) -> None:
        """L3: not after a rewind and not after a clear."""
        exchanges(lineage, 2)
        lineage.rewind(LOG, 2)
        assert lineage.view(LOG).reach == 4
        exchanges(lineage, 1)
        lineage.clear(LOG)
        exchanges(lineage, 1)
        assert spans(lineage.view(LOG).survey()) == [(7, 7), (8, 8)]

    def test_each_record_is_admitted_only_in_its_states(self, lineage: Lineage) -> None:
        """L4, along one exchange with a batch of two calls."""
        view = lineage.view
        assert view(LOG).state == "ready"
        assert refusal(lineage.assistant, LOG, reply("early")) == "state"
        assert refusal(lineage.steer, LOG, user("early")) == "state"
        assert refusal(lineage.tool_results, LOG, [("c1", "x")]) == "state"
        owe(lineage, "c1", "c2")
        assert (view(LOG).state, view(LOG).owed, view(LOG).unclosed) == ("owing", ("c1", "c2"), 2)
        assert refusal(lineage.prompt, LOG, user("no")) == "state"
        assert refusal(lineage.steer, LOG, user("no")) == "state"
        assert refusal(lineage.assistant, LOG, reply("no")) == "state"
        assert refusal(lineage.assistant, LOG, reply("no"), origin="import") == "state"
        assert refusal(lineage.tool_results, LOG, [("c1", "x")]) == "results"
        assert refusal(lineage.tool_results, LOG, [("c1", "x"), ("c1", "x")]) == "results"
        assert refusal(lineage.tool_results, LOG, [("c1", "x"), ("c2", "x"), ("c1", "x")]) == "results"
        assert refusal(lineage.tool_results, LOG, [("c1", "x"), ("c2", "x"), ("c3", "x")]) == "results"
        lineage.tool_results(LOG, [("c2", "two"), ("c1", "one")])
        assert (view(LOG).state, view(LOG).owed, view(LOG).unclosed) == ("answered", (), 2)
        lineage.steer(LOG, user("only the red ones"))
        assert (view(LOG).state, view(LOG).unclosed, view(LOG).reach) == ("prompted", 2, 2)
        lineage.assistant(LOG, reply("done"))
        assert (view(LOG).state, view(LOG).unclosed) == ("ready", None)
        assert [len(item.messages) for item in view(LOG).frontier] == [1, 4, 1]

    def test_an_unanswered_prompt_closes_when_the_next_one_opens(self, lineage: Lineage) -> None:
        """Abandoned, whole, and evictable."""
        lineage.prompt(LOG, user("first"))
        assert refusal(lineage.evict, LOG, 1, 1, "n") == "unclosed"
        lineage.prompt(LOG, user("second"))
        lineage.evict(LOG, 1, 1, "given up")
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 2)]

    def test_the_live_prompt_may_leave_while_its_reply_waits(self, lineage: Lineage) -> None:
        """The model evicts inside its own call; only the turn being written is kept back."""
        owe(lineage, "c1")
        assert refusal(lineage.evict, LOG, 1, 2, "n") == "unclosed"
        lineage.evict(LOG, 1, 1, "asked to do it")
        assert lineage.view(LOG).state == "owing"
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 2)]

    def test_the_harness_waits_for_results(self, lineage: Lineage) -> None:
        """A forced eviction, a rewind and a clear are refused while results are owed."""
        exchanges(lineage, 1)
        owe(lineage, "c1")
        assert refusal(lineage.force, LOG, 0) == "owing"
        assert refusal(lineage.force, LOG, through=1) == "owing"
        assert refusal(lineage.rewind, LOG, 1) == "owing"
        assert refusal(lineage.clear, LOG) == "owing"

    def test_quiesce_answers_what_is_owed_and_nothing_else(self, lineage: Lineage) -> None:
        """One placeholder a call; at rest it records nothing."""
        owe(lineage, "c1", "c2")
        record = lineage.quiesce(LOG)
        assert record is not None
        assert [message["parts"][0]["id"] for message in record.messages] == ["c1", "c2"]
        assert lineage.view(LOG).state == "answered"
        assert lineage.quiesce(LOG) is None

    def test_an_imported_reply_may_stand_where_no_prompt_did(self, lineage: Lineage) -> None:
        """Its kind says so; one with calls owes results like any other."""
        lineage.assistant(LOG, reply("from elsewhere", call("c1")), origin="import")
        assert lineage.view(LOG).state == "owing"
        lineage.tool_results(LOG, [("c1", "x")], origin="import")
        lineage.prompt(LOG, user("hello"), origin="import")
        lineage.assistant(LOG, reply("own"))
        assert [row.kind for row in lineage.view(LOG).survey()] == ["import", "import", "own"]

    def test_a_key_said_again_records_nothing_and_another_body_is_refused(self, lineage: Lineage) -> None:
        """Even where the same record would no longer be lawful."""
        first = lineage.prompt(LOG, user("hello"), key="k")
        lineage.assistant(LOG, reply("hi", call("c1")))
        assert lineage.prompt(LOG, user("hello"), key="k") is first
        assert refusal(lineage.prompt, LOG, user("other"), key="k") == "key"
        assert lineage.view(LOG).reach == 2


class TestRewind:
    """Anchors, what they withdraw, and the state read off afterwards."""

    def test_a_rewind_to_a_residues_from_withdraws_it_and_inside_is_refused(self, lineage: Lineage) -> None:
        """The leaves of a residue are all withdrawn, or its from is not."""
        exchanges(lineage, 4)
        lineage.evict(LOG, 3, 6, "run")
        assert refusal(lineage.rewind, LOG, 5) == "anchor"
        assert refusal(lineage.rewind, LOG, 6) == "anchor"
        assert refusal(lineage.rewind, LOG, 9) == "anchor"
        lineage.rewind(LOG, 3)
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 2)]
        assert {location for span, _, location in places(lineage) if span[0] >= 3} == {WITHDRAWN}
        assert lineage.view(LOG).under((3, 6)) == []

    def test_a_rewind_past_a_residue_leaves_it(self, lineage: Lineage) -> None:
        """Turn 7 starts an item, so residue 3-6 stands."""
        exchanges(lineage, 4)
        lineage.evict(LOG, 3, 6, "run")
        lineage.rewind(LOG, 7)
        assert spans(lineage.view(LOG).survey()) == [(1, 1), (2, 2), (3, 6)]
        assert lineage.view(LOG).state == "ready"

    @pytest.mark.parametrize(
        ("anchor", "state", "unclosed"),
        [(1, "ready", None), (2, "prompted", 1), (3, "answered", 2), (4, "prompted", 3), (5, "ready", None)],
        ids=["nothing", "a prompt", "a batch answered", "a steered batch", "a closing reply"],
    )
    def test_the_state_is_read_off_the_newest_turn_that_stands(
        self, lineage: Lineage, anchor: int, state: str, unclosed: int | None
    ) -> None:
        """Turns: prompt, answered batch, steered batch, closing reply, prompt."""
        owe(lineage, "c1")
        lineage.tool_results(LOG, [("c1", "x")])
        lineage.assistant(LOG, reply(None, call("c2")))
        lineage.tool_results(LOG, [("c2", "x")])
        lineage.steer(LOG, user("red ones"))
        lineage.assistant(LOG, reply("done"))
        lineage.prompt(LOG, user("more"))
        lineage.rewind(LOG, anchor)
        assert (lineage.view(LOG).state, lineage.view(LOG).unclosed) == (state, unclosed)

    def test_a_rewind_to_a_departed_prompt_is_ready(self, lineage: Lineage) -> None:
        """Departed means ready, although the departed turn's last record was a prompt."""
        owe(lineage, "c1")
        lineage.evict(LOG, 1, 1, "the task")
        lineage.tool_results(LOG, [("c1", "x")])
        lineage.rewind(LOG, 2)
        assert lineage.view(LOG).state == "ready"
        assert refusal(lineage.assistant, LOG, reply("no prompt stands")) == "state"

    def test_a_rewound_prompt_may_be_steered_and_answered_again(self, lineage: Lineage) -> None:
        """The reply was withdrawn, so its prompt is the newest turn once more; it grows, and ids go on rising."""
        exchanges(lineage, 1)
        lineage.rewind(LOG, 2)
        lineage.steer(LOG, user("in one word"))
        lineage.assistant(LOG, reply("yes"))
        assert [(row.span, len(item.messages)) for row, item in zip(*answers(lineage), strict=True)] == [
            ((1, 1), 2),
            ((3, 3), 1),
        ]

    def test_clear_withdraws_everything_and_an_empty_context_may_be_cleared(self, lineage: Lineage) -> None:
        """Departed items too."""
        lineage.clear(LOG)
        exchanges(lineage, 2)
        lineage.evict(LOG, 1, 2, "run")
        lineage.clear(LOG)
        assert lineage.view(LOG).survey() == []
        assert {location for _, _, location in places(lineage)} == {WITHDRAWN}
        assert lineage.view(LOG).state == "ready"


def answers(lineage: Lineage) -> tuple[list[Any], list[Any]]:
    """The trunk's survey rows and the items behind them."""
    return lineage.view(LOG).survey(), lineage.view(LOG).frontier


class TestForks:
    """L13: a fork sees what was there, and is seen by no one."""

    def test_a_child_inherits_the_table_as_it_stood(self, lineage: Lineage) -> None:
        """Residues and withdrawals with it; every turn's kind is inherited, an import's too."""
        lineage.prompt(LOG, user("elsewhere"), origin="import")
        lineage.assistant(LOG, reply("there"))
        exchanges(lineage, 2)
        lineage.evict(LOG, 1, 2, "start")
        lineage.rewind(LOG, 5)
        lineage.fork(LOG, "scout")
        exchanges(lineage, 1)
        lineage.evict(LOG, 1, 3, "later, in the trunk alone")
        assert places(lineage, "scout") == [
            ((1, 2), "residue", RESIDENT),
            ((1, 1), "inherited", (1, 2)),
            ((2, 2), "inherited", (1, 2)),
            ((3, 3), "inherited", RESIDENT),
            ((4, 4), "inherited", RESIDENT),
            ((5, 5), "inherited", WITHDRAWN),
            ((6, 6), "inherited", WITHDRAWN),
        ]

    def test_a_child_mints_above_the_reach_of_its_parent(self, lineage: Lineage) -> None:
        """Both go on from the same id: along each line it names one turn."""
        exchanges(lineage, 1)
        lineage.fork(LOG, "scout")
        lineage.prompt("scout", user("mine"))
        lineage.prompt(LOG, user("theirs"))
        assert lineage.view("scout").frontier[-1].messages == (user("mine"),)
        assert lineage.view(LOG).frontier[-1].messages == (user("theirs"),)
        assert lineage.view(LOG).reach == lineage.view("scout").reach == 3

    def test_a_fork_in_mid_batch_inherits_the_owing_turn_withdrawn(self, lineage: Lineage) -> None:
        """The child owes nothing, may answer the prompt itself, and its ids start above the withdrawn turn."""
        owe(lineage, "c1")
        lineage.fork(LOG, "scout")
        lineage.tool_results(LOG, [("c1", "late")])
        view = lineage.view("scout")
        assert places(lineage, "scout") == [((1, 1), "inherited", RESIDENT), ((2, 2), "inherited", WITHDRAWN)]
        assert (view.state, view.owed, view.unclosed, view.reach) == ("prompted", (), 1, 2)
        assert view.turns[1].messages == (reply("doing it", call("c1")),)
        lineage.assistant("scout", reply("another way"))
        assert lineage.view("scout").frontier[-1].span == (3, 3)
        assert lineage.view(LOG).state == "answered"

    def test_a_fork_of_an_answered_batch_may_reply_but_not_steer(self, lineage: Lineage) -> None:
        """The turn belongs to the parent; a prompt or a reply is the child's own first record."""
        owe(lineage, "c1")
        lineage.tool_results(LOG, [("c1", "x")])
        lineage.fork(LOG, "scout")
        assert lineage.view("scout").state == "answered"
        assert refusal(lineage.steer, "scout", user("no")) == "foreign-turn"
        lineage.assistant("scout", reply("done"))
        lineage.prompt("scout", user("go on"))
        lineage.steer("scout", user("quickly"))
        assert lineage.view(LOG).state == "answered"

    def test_a_turn_that_grows_in_the_parent_does_not_grow_in_the_child(self, lineage: Lineage) -> None:
        """Its weight in the child is that of the records up to the fork."""
        lineage.prompt(LOG, user("ask"))
        lineage.fork(LOG, "scout")
        lineage.steer(LOG, user("more"))
        assert len(lineage.view("scout").render()) == 1
        assert len(lineage.view(LOG).render()) == 2
        assert lineage.view("scout").total_bytes() == weigh(user("ask"))

    def test_a_grandchild_sees_each_ancestor_up_to_its_own_fork(self, lineage: Lineage) -> None:
        """The trunk's turns 1-2, the child's 3-4, and nothing recorded after."""
        exchanges(lineage, 1)
        lineage.fork(LOG, "child")
        exchanges(lineage, 1, "child")
        lineage.evict("child", 2, 3, "across the fork")
        lineage.fork("child", "grandchild")
        lineage.evict("child", 1, 4, "after it")
        exchanges(lineage, 3, LOG)
        lineage.prompt("grandchild", user("mine"))
        assert places(lineage, "grandchild") == [
            ((1, 1), "inherited", RESIDENT),
            ((2, 3), "residue", RESIDENT),
            ((2, 2), "inherited", (2, 3)),
            ((3, 3), "inherited", (2, 3)),
            ((4, 4), "inherited", RESIDENT),
            ((5, 5), "own", RESIDENT),
        ]

    def test_what_one_sibling_does_to_inherited_items_shows_in_no_other(self, lineage: Lineage) -> None:
        """Evictions, rewinds and clears of inherited turns stay in the log that made them."""
        exchanges(lineage, 3)
        for name in ("one", "two", "three"):
            lineage.fork(LOG, name)
        lineage.evict("one", 1, 4, "mine")
        lineage.rewind("two", 3)
        lineage.clear("three")
        assert spans(lineage.view(LOG).survey()) == [(n, n) for n in range(1, 7)]
        assert spans(lineage.view("one").survey()) == [(1, 4), (5, 5), (6, 6)]
        assert spans(lineage.view("two").survey()) == [(1, 1), (2, 2)]
        assert lineage.view("three").survey() == []

    def test_a_name_is_taken_once_and_a_root_inherits_nothing(self, lineage: Lineage) -> None:
        """Roots and forks share the names."""
        exchanges(lineage, 1)
        lineage.new_log("other")
        assert refusal(lineage.fork, LOG, "other") == "name-taken"
        assert refusal(lineage.new_log, LOG) == "name-taken"
        assert refusal(lineage.fork, "nobody", "new") == "unknown-log"
        assert lineage.view("other").index() == []


class TestPlans:
    """The harness's prefix span: what it charges, and where it stops."""

    @pytest.fixture
    def weighed(self, lineage: Lineage) -> Lineage:
        """Four abandoned prompts of 101, 102, 103 and 104 bytes."""
        frame = weigh(user(""))
        for number in range(1, 5):
            lineage.prompt(LOG, user("x" * (100 + number - frame)))
        assert [row.bytes for row in lineage.view(LOG).survey()] == [101, 102, 103, 104]
        return lineage

    @pytest.mark.parametrize(
        ("keep", "span"),
        [(0, (1, 3)), (206, (1, 3)), (207, (1, 2)), (308, (1, 2)), (309, (1, 1)), (409, (1, 1)), (410, None)],
    )
    def test_the_newest_item_is_charged_first_and_the_first_misfit_ends_the_span(
        self, weighed: Lineage, keep: int, span: Span | None
    ) -> None:
        """104 is spent before the walk begins: 104 + 103 = 207 keeps turn 3, 309 keeps turn 2, 410 keeps all."""
        assert weighed.view(LOG).plan(keep) == span

    def test_half_of_the_total_is_kept_unless_told(self, weighed: Lineage) -> None:
        """410 // 2 = 205 holds the newest alone."""
        assert weighed.view(LOG).plan() == (1, 3)

    def test_an_empty_context_and_a_lone_item_are_no_plan(self, lineage: Lineage) -> None:
        """The newest item is never a candidate."""
        assert lineage.view(LOG).plan(0) is None
        lineage.prompt(LOG, user("alone"))
        assert lineage.view(LOG).plan(0) is None

    def test_one_residue_is_no_plan_and_two_items_merge(self, weighed: Lineage) -> None:
        """The harness never rewrites a note it cannot write; a residue and a turn go together."""
        weighed.force(LOG, through=2)
        view = weighed.view(LOG)
        assert view.plan(207) is None
        assert refusal(weighed.force, LOG, through=2) == "one-residue"
        assert refusal(weighed.force, LOG, 207) == "no-plan"
        weighed.force(LOG, 0)
        assert [(row.span, row.label) for row in weighed.view(LOG).survey()] == [
            ((1, 3), ""),
            ((4, 4), "x" * 50),
        ]

    def test_a_forced_eviction_runs_from_the_first_item_through_one_that_ends_there(self, weighed: Lineage) -> None:
        """Through is held to the same alignment; the turn in hand stays."""
        weighed.evict(LOG, 2, 3, "pair")
        assert refusal(weighed.force, LOG, through=2) == "misaligned"
        assert refusal(weighed.force, LOG, through=4) == "unclosed"
        assert refusal(weighed.force, LOG, through=7) == "not-recorded"
        weighed.force(LOG, through=3)
        assert spans(weighed.view(LOG).survey()) == [(1, 3), (4, 4)]

    def test_the_first_item_may_be_past_a_withdrawn_prefix(self, lineage: Lineage) -> None:
        """After a clear the prefix starts at the first item that stands."""
        exchanges(lineage, 1)
        lineage.clear(LOG)
        exchanges(lineage, 1)
        assert lineage.view(LOG).plan(0) == (3, 3)
        lineage.force(LOG, through=4)
        assert spans(lineage.view(LOG).survey()) == [(3, 4)]

    def test_a_plan_may_take_the_live_prompt(self, lineage: Lineage) -> None:
        """Nothing in the plan knows what a prompt is."""
        owe(lineage, "c1")
        lineage.tool_results(LOG, [("c1", "long " * 100)])
        assert lineage.view(LOG).plan() == (1, 1)


class TestPastAndTransactions:
    """``at=`` and what a rolled-back transaction leaves."""

    def test_the_past_is_the_log_as_it_stood(self, lineage: Lineage) -> None:
        """Before the eviction, before the rewind, before the results."""
        owe(lineage, "c1")  # records 2 and 3
        lineage.tool_results(LOG, [("c1", "x")])  # 4
        lineage.assistant(LOG, reply("done"))  # 5
        lineage.evict(LOG, 1, 2, "run")  # 6
        lineage.clear(LOG)  # 7
        assert lineage.view(LOG, 1).index() == []
        assert (lineage.view(LOG, 3).state, len(lineage.view(LOG, 3).render())) == ("owing", 2)
        assert len(lineage.view(LOG, 4).render()) == 3
        assert spans(lineage.view(LOG, 5).survey()) == [(1, 1), (2, 2), (3, 3)]
        assert spans(lineage.view(LOG, 6).survey()) == [(1, 2), (3, 3)]
        assert lineage.view(LOG, 7).survey() == []

    def test_a_fork_has_no_past_before_its_opening(self, lineage: Lineage) -> None:
        """The child's past starts with the inherited table."""
        exchanges(lineage, 1)
        lineage.fork(LOG, "scout")
        exchanges(lineage, 1, "scout")
        assert refusal(lineage.view, "scout", 3) == "at"
        assert spans(lineage.view("scout", 4).survey()) == [(1, 1), (2, 2)]

    def test_cutting_back_undoes_every_kind_of_record(self, lineage: Lineage) -> None:
        """Forks disappear with their names; ids are minted again, since they were never recorded."""
        exchanges(lineage, 1)
        mark = lineage.seq
        before = places(lineage)
        lineage.evict(LOG, 1, 2, "run")
        lineage.fork(LOG, "scout")
        lineage.prompt(LOG, user("again"))
        lineage.cut_back(mark)
        assert (places(lineage), lineage.logs, lineage.view(LOG).reach) == (before, [LOG], 2)


class TestLabelsAndWeights:
    """Labels and bytes, counted by hand."""

    def test_a_message_weighs_its_compact_json(self) -> None:
        """54 bytes of frame, then the text: escaped as JSON asks, and otherwise UTF-8 as it is."""
        assert weigh(user("")) == 54
        assert weigh(user("é\n")) == 54 + 2 + 2

    def test_what_no_provider_takes_weighs_as_its_replacement_and_is_kept(self, lineage: Lineage) -> None:
        """A NUL and half a surrogate pair are sent as U+FFFD, three bytes each, and read back as recorded."""
        lineage.prompt(LOG, user("a\x00b\ud800"))
        view = lineage.view(LOG)
        assert (view.survey()[0].bytes, view.survey()[0].label) == (54 + 2 + 3 + 3, "a\ufffdb\ufffd")
        assert (view.render(), view.turns[0].messages) == ([user("a\ufffdb\ufffd")], (user("a\x00b\ud800"),))

    def test_a_turn_weighs_the_sum_of_its_messages(self, lineage: Lineage) -> None:
        """A batch's results each weigh their own message."""
        owe(lineage, "c1", "c2")
        lineage.tool_results(LOG, [("c2", "b"), ("c1", "aa")])
        row = lineage.view(LOG).survey()[1]
        assert row.bytes == weigh(reply("doing it", call("c1"), call("c2"))) + weigh(result("c1", "aa")) + weigh(
            result("c2", "b")
        )

    def test_a_label_is_the_first_line_cut_to_fifty(self) -> None:
        """A combining mark goes with its base, and an empty line stays empty."""
        assert opening("one\ntwo") == "one"
        assert opening("\ntwo") == ""
        assert opening("one\r\ntwo") == opening("one\u2028two") == "one"
        assert opening("y" * 60) == "y" * 50
        assert opening("y" * 49 + "e\u0301" + "y") == "y" * 49
        assert opening("y" * 48 + "e\u0301" + "y") == "y" * 48 + "e\u0301"

    def test_a_call_first_reply_takes_its_label_from_the_description(self) -> None:
        """Prose wins when there is some; neither gives an empty label."""
        described = call("c1", cmd="ls", description="list files\nall")
        assert label_of(reply(None, described)) == "list files"
        assert label_of(reply("looking", described)) == "looking"
        assert label_of(reply("", described)) == "list files"
        assert label_of(reply(None, call("c1", description=3))) == ""

    def test_steering_and_results_leave_the_label_alone(self, lineage: Lineage) -> None:
        """It is set once, when the turn opens."""
        lineage.prompt(LOG, user("first"))
        lineage.steer(LOG, user("second"))
        assert [row.label for row in lineage.view(LOG).survey()] == ["first"]
