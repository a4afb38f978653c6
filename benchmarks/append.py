"""Append and reopen: records of 1 kB, each its own transaction, against a bare insert, JSONL and peers at the same durability.

Every contestant runs in a process of its own and gets the same records in the shape it takes, made beforehand. They append in turn,
a round of records each, until all have the whole conversation; then each closes, and reads all of it back from the closed file.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
from typing import TYPE_CHECKING, Any

from contest import BARE, BARE_BATCHED, CONTENDERS, OURS, OURS_BATCHED, Contender, Running, present
from measuring import Result, Scale, run, shown, table

if TYPE_CHECKING:
    from pathlib import Path

BODY_BYTES = 1000
BATCH = 50  # records asked for at a time: a transaction of those who batch
DURABILITIES = ("full", "normal", "off")
ROUNDS: dict[Scale, dict[str, tuple[int, int]]] = {  # rounds, and batches to a round
    "tiny": {"full": (1, 1), "normal": (1, 1), "off": (1, 1)},
    "quick": {"full": (4, 1), "normal": (3, 4), "off": (3, 4)},
    "default": {"full": (15, 1), "normal": (7, 20), "off": (7, 20)},
    "full": {"full": (60, 1), "normal": (15, 20), "off": (15, 20)},
}
READS = 3
SYNCED = {"full": "FULL: every record synced", "normal": "NORMAL: synced at checkpoints", "off": "sync off"}


class Timed:
    """One contestant at work: the seconds of each batch, by round."""

    def __init__(self, contender: Contender, contestant: Running, folder: Path) -> None:
        self.contender, self.contestant, self.folder = contender, contestant, str(folder)
        self.count = 0
        self.rounds: list[list[float]] = []
        self.reads: list[float] = []

    def append(self, batches: int) -> None:
        """One round, as far as the contestant's limit allows."""
        taken = []
        for _ in range(batches):
            if self.contender.limit and self.count >= self.contender.limit:
                break
            answer = self.contestant.ask("append", shape="plain", first=self.count, count=BATCH, size=BODY_BYTES)
            self.count += BATCH
            taken.append(answer["seconds"] / BATCH)
        if taken:
            self.rounds.append(taken)

    def read(self) -> None:
        """Read all of it back. What was not kept is a failure of the run."""
        answer = self.contestant.ask("read", folder=self.folder)
        assert answer["messages"] == self.count, f"{self.contender.name} kept {answer['messages']} of {self.count}"  # noqa: S101
        self.reads.append(answer["seconds"])

    def figures(self) -> dict[str, Any]:
        """Seconds a record: each round's mean, and the median of them; of the first quarter and the last; to read all back."""
        means = [statistics.mean(taken) for taken in self.rounds]
        batches = [seconds for taken in self.rounds for seconds in taken]
        quarter = max(1, len(batches) // 4)
        return {
            "records": self.count,
            "append": statistics.median(means),
            "rounds": means,
            "first": statistics.median(batches[:quarter]),
            "last": statistics.median(batches[-quarter:]),
            "reopen": statistics.median(self.reads),
        }


def contend(contenders: list[Contender], folder: Path, durability: str, rounds: int, batches: int) -> dict[str, Any]:
    """The contestants' figures at one durability. They take turns, a round each."""
    with contextlib.ExitStack() as stack:
        timed = []
        for number, contender in enumerate(contenders):
            timed.append(Timed(contender, stack.enter_context(Running(contender)), folder / f"{durability}-{number}"))
            timed[-1].contestant.ask("open", folder=timed[-1].folder, durability=durability)
        for number in range(rounds):
            first = number % len(timed)  # another begins each round: what one leaves for the disk falls on all in turn
            for each in timed[first:] + timed[:first]:
                each.append(batches)
        for each in timed:
            each.contestant.ask("close")
        for _ in range(READS):
            for each in timed:
                each.read()
        for each in timed:
            shutil.rmtree(each.folder)
    return {each.contender.name: each.figures() for each in timed}


def measure(folder: Path, scale: Scale) -> Result:
    """All durabilities; JSONL has none between synced and not."""
    contenders, absent = present(peers=scale != "tiny")
    versions = {}
    for contender in contenders:
        with Running(contender) as contestant:
            versions[contender.name] = contestant.ask("tell")["version"]
    seconds = {}
    for durability in DURABILITIES:
        some = [contender for contender in contenders if contender.name != "JSONL" or durability != "normal"]
        seconds[durability] = contend(some, folder, durability, *ROUNDS[scale][durability])
    return {
        "body_bytes": BODY_BYTES,
        "batch": BATCH,
        "versions": versions,
        "absent": absent,
        "seconds": seconds,
    }


def ratio(result: Result, durability: str, ours: str = OURS, other: str = BARE) -> float:
    """How many of our appends go into one of theirs: the median over the rounds, each compared with the same round of the other.

    Rounds follow one another at once, so that what else the machine does in the meantime falls on both.
    """
    seconds = result["seconds"][durability]
    pairs = zip(seconds[ours]["rounds"], seconds[other]["rounds"], strict=False)  # one may have reached its limit
    return float(statistics.median(theirs / mine for mine, theirs in pairs))


def against_peers(result: Result) -> dict[str, dict[str, float]]:
    """Our speed as a multiple of each peer's from PyPI, by peer and durability."""
    peers = [contender.name for contender in CONTENDERS if contender.needs and contender.name in result["versions"]]
    return {name: {durability: ratio(result, durability, OURS, name) for durability in DURABILITIES} for name in peers}


def report(result: Result) -> str:
    """The tables, a durability each, and who does what."""
    texts = [
        f"Records of {result['body_bytes']} bytes, appended in rounds, the contestants in turn; medians of rounds, in which the "
        "checkpoints of the write-ahead log are paid. *x bare* is the speed as a multiple of the bare insert's, round by round (of "
        f"the batched one's for those that batch, {result['batch']} records a transaction); *last : first* is the last "
        "quarter's time over the first quarter's; *reopen* opens the closed file and reads every message back, a record."
    ]
    for durability, seconds in result["seconds"].items():
        rows = []
        for name, found in seconds.items():
            bare = BARE_BATCHED if name in (OURS_BATCHED, BARE_BATCHED) else BARE
            rows.append(
                [
                    name,
                    f"{found['records']:,}",
                    f"{1 / found['append']:,.0f}",
                    shown(found["append"]),
                    f"{ratio(result, durability, name, bare):.2f}",
                    f"{found['last'] / found['first']:.2f}",
                    shown(found["reopen"] / found["records"]),
                ]
            )
        headers = ["contestant", "records", "records/s", "a record", "x bare", "last : first", "reopen, a record"]
        texts.append(f"**{SYNCED[durability]}**\n\n{table(headers, rows)}")
    versions = result["versions"]
    told = [[contender.name, versions.get(contender.name, ""), contender.does] for contender in CONTENDERS]
    texts.append("What each does, and what it does not:")
    texts.append(table(["contestant", "version", "does"], told))
    texts += [f"{name}: not measured, {why}." for name, why in result["absent"].items()]
    return "\n\n".join(texts)


if __name__ == "__main__":
    run("append", __doc__, measure, report)
