"""The table with a joint group against a dumb model, through restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import NO_FENCE
from faircopy.journal.entry import TransactionId
from faircopy.transactions import decisions, joint_decisions
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.joint_group import NO_KEY, Membership
from faircopy.transactions.metadata_journal import (
    decode_group,
    decode_producer,
    encode_group,
    encode_producer,
    joined_of,
)
from faircopy.transactions.state import TransactionState
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import member_id
from tests.many import many
from tests.unit.transactions.test_table import Bench

GROUP = "job"


@dataclass
class Writer:
    """A member, as the model knows it. `ends` are the decisions about its transactions that are not carried
    out yet, each with the writers that it is about.
    """

    run: str
    key: int
    is_open: bool = False
    is_left: bool = False
    ends: list[Decision] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        return not self.is_left or self.is_open or bool(self.ends)


@dataclass
class Decision:
    """To commit or abort what these writers have written; `key` is that of a joint commit."""

    lead: TransactionId
    is_commit: bool
    about: dict[int, TransactionId]
    key: int = NO_KEY


class Model:
    """One group. What is left behind is aborted, and then forgotten."""

    def __init__(self) -> None:
        self.run = ""
        self.former: set[str] = set()
        self.writers: dict[int, Writer] = {}
        self.committed: set[int] = set()
        self.named: dict[int, set[int]] = {}
        self.decisions: list[Decision] = []

    @property
    def last_key(self) -> int:
        return max([NO_KEY, *self.committed, *(each.key for each in self.decisions)])

    def is_refused(self, run: str, key: int) -> bool:
        return run in self.former or NO_KEY < key < self.last_key

    def is_decided(self, key: int) -> bool:
        return NO_KEY < key == self.last_key

    def enter(self, run: str, open_ones: dict[int, TransactionId]) -> None:
        """A request of a run: a new one leaves all members of others behind."""
        if self.run and run != self.run:
            self.former.add(self.run)
        self.run = run
        self.leave({number for number, each in self.writers.items() if each.run != run}, open_ones)

    def leave(self, numbers: set[int], open_ones: dict[int, TransactionId]) -> None:
        for number in numbers:
            writer = self.writers[number]
            writer.is_left = True
            if writer.is_open:
                self.decide(Decision(open_ones[number], is_commit=False, about={number: open_ones[number]}))

    def decide(self, decision: Decision) -> None:
        for number in decision.about:
            self.writers[number].is_open = False
            self.writers[number].ends.append(decision)
        self.decisions.append(decision)

    def commit(self, key: int, named: dict[int, TransactionId], open_ones: dict[int, TransactionId]) -> None:
        left = {
            number
            for number, each in self.writers.items()
            if each.run == self.run and NO_KEY < each.key <= key and number not in named
        }
        self.leave(left, open_ones)
        if named:
            lead = next(iter(named.values()))
            self.decide(Decision(lead, is_commit=True, about=named, key=key))
        else:
            self.committed.add(key)

    def finish(self, decision: Decision) -> None:
        self.decisions.remove(decision)
        for number in decision.about:
            self.writers[number].ends.remove(decision)
            if self.writers[number].key != NO_KEY:
                self.writers[number].is_left = True
        if decision.key != NO_KEY:
            self.committed.add(decision.key)

    def take_back(self, decision: Decision) -> None:
        """Recovery finds that a promise was lost."""
        self.decisions.remove(decision)
        for number, transaction in decision.about.items():
            self.writers[number].ends.remove(decision)
            self.decide(Decision(transaction, is_commit=False, about={number: transaction}))

    def forget_the_gone(self) -> None:
        self.writers = {number: each for number, each in self.writers.items() if each.is_known}


class Both:
    """The table and the model, step by step."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.model = Model()
        self.next_number = 1

    @property
    def table(self) -> TransactionTable:
        return self.bench.table

    def open_ones(self) -> dict[int, TransactionId]:
        members = (member for member, _ in self.table.memberships(GROUP))
        return {each.producer_id: each.current.id for each in members if each.current is not None}

    def is_answered(self, run: str, key: int) -> bool:
        """Whether a request is refused, or has nothing to do, in both."""
        known = self.table.groups.get(GROUP)
        if self.model.is_refused(run, key):
            with pytest.raises(TransactionRefused):
                joint_decisions.ensure_run(known, run)
                joint_decisions.is_decided(known, key)
            return True
        joint_decisions.ensure_run(known, run)
        assert joint_decisions.is_decided(known, key) == self.model.is_decided(key)
        return self.model.is_decided(key)

    def join(self, run: str, key: int, _pick: int) -> None:
        if self.is_answered(run, key):
            return
        number, self.next_number = self.next_number, self.next_number + 1
        before = self.open_ones()
        membership = Membership(GROUP, run, key, "task")
        self.bench.append(joint_decisions.join(self.table, membership, number, 60_000, 0))
        self.model.enter(run, before)
        self.model.writers[number] = Writer(run, key)

    def write(self, _run: str, _key: int, pick: int) -> None:
        able = [
            number
            for number, each in self.model.writers.items()
            if not each.is_left and not each.is_open and (not each.ends or each.key == NO_KEY)
        ]
        if able:
            number = able[pick % len(able)]
            self.bench.add(member_id(GROUP, number))
            self.model.writers[number].is_open = True

    def commit(self, run: str, key: int, pick: int) -> None:
        """`pick` chooses among the members of the key, and now and then someone who is none of them."""
        if key == NO_KEY:
            return
        writers = self.model.writers
        fit = [number for number, each in writers.items() if (each.run, each.key) == (run, key)]
        chosen = [number for place, number in enumerate(fit) if pick >> place & 1]
        if pick % 16 == 15:
            chosen.append(self.next_number)
        if self.is_answered(run, key):
            if not self.model.is_refused(run, key):
                self.commit_again(key, chosen)
            return
        if any(number not in writers or writers[number].ends or writers[number].is_left for number in chosen):
            with pytest.raises(TransactionRefused):
                joint_decisions.commit(self.table, GROUP, run, key, chosen)
            return
        before = self.open_ones()
        self.bench.append(joint_decisions.commit(self.table, GROUP, run, key, chosen))
        self.model.enter(run, before)
        self.model.commit(key, {number: before[number] for number in chosen if number in before}, before)
        self.model.named[key] = set(chosen)

    def commit_again(self, key: int, chosen: list[int]) -> None:
        """A key that is decided: with whom, is remembered."""
        group, named = self.table.groups[GROUP], self.model.named[key]
        joint_decisions.ensure_was_named(group, key, named)
        joint_decisions.ensure_was_named(group, key, list(named)[:1])
        if not named.issuperset(chosen):
            with pytest.raises(TransactionRefused, match="committed already"):
                joint_decisions.ensure_was_named(group, key, chosen)

    def abort(self, run: str, key: int, _pick: int) -> None:
        if self.is_answered(run, key):
            return
        for member in joint_decisions.aborted(self.table, GROUP, run, key):
            if member.current is not None:
                transaction = member.current
                self.bench.append(decisions.prepare_abort(transaction, member.epoch))
                about = {member.producer_id: transaction.id}
                self.model.decide(Decision(transaction.id, is_commit=False, about=about))

    def finish(self, _run: str, _key: int, pick: int) -> None:
        if self.model.decisions:
            decision = self.model.decisions[pick % len(self.model.decisions)]
            self.bench.finish(decision.lead)
            self.model.finish(decision)

    def take_back(self, _run: str, _key: int, pick: int) -> None:
        commits = [each for each in self.model.decisions if each.is_commit]
        if commits:
            decision = commits[pick % len(commits)]
            lead = self.table.transactions[decision.lead]
            self.bench.append(decisions.prepare_abort(lead, NO_FENCE, untold=True))
            self.model.take_back(decision)

    def forget(self, _run: str, _key: int, _pick: int) -> None:
        if self.model.run:
            is_used = bool(self.model.decisions) or any(each.is_open for each in self.model.writers.values())
            if is_used:
                with pytest.raises(TransactionRefused):
                    joint_decisions.forget(self.table, GROUP)
                return
            entry = joint_decisions.forget(self.table, GROUP)
            assert entry is not None
            self.bench.append(entry)
            self.model = Model()

    def restart(self, _run: str, _key: int, _pick: int) -> None:
        """From a checkpoint."""
        former, self.bench.table = self.table, TransactionTable()
        for name, group in former.groups.items():
            self.table.groups[name] = decode_group(json.loads(json.dumps(encode_group(group))))
        rows = [json.loads(json.dumps(encode_producer(each))) for each in former.producers.values()]
        for row in rows:
            producer = self.table.producers[row["id"]] = decode_producer(row)
            held = [*producer.ending.values(), *([producer.current] if producer.current else [])]
            self.table.transactions |= {each.id: each for each in held}
            self.table.groups[GROUP].members.add(row["id"])
        for lead, joined in joined_of(rows):
            self.table.transactions[lead].joined = tuple(self.table.transactions[each] for each in joined)
            for each in joined:
                self.table.transactions[each].lead = lead
        self.table.gone = former.gone

    def check(self) -> None:
        """The table is as the model is, and who is gone is known to be."""
        known = {number for number in range(1, self.next_number) if number not in self.model.writers}
        self.model.forget_the_gone()
        group = self.table.groups.get(GROUP)
        assert (group.run if group else "") == self.model.run
        assert (group.last_key if group else NO_KEY) == self.model.last_key
        members = {member.producer_id: member for member, _ in self.table.memberships(GROUP)}
        assert members.keys() == self.model.writers.keys()
        assert {member_id(GROUP, number) for number in members} == self.table.producers.keys()
        assert self.table.gone >= known
        assert not self.table.gone & members.keys()
        for number, writer in self.model.writers.items():
            assert (members[number].current is not None) == writer.is_open
            assert [each.state for each in members[number].ending.values()] == [
                TransactionState.PREPARE_COMMIT if each.is_commit else TransactionState.PREPARE_ABORT
                for each in writer.ends
            ]
        open_here = len(self.open_ones())
        assert len(self.table.transactions) == open_here + sum(
            len(each.about) for each in self.model.decisions
        )


WAYS: dict[str, Callable[[Both, str, int, int], None]] = {
    "join": Both.join,
    "write": Both.write,
    "commit": Both.commit,
    "abort": Both.abort,
    "finish": Both.finish,
    "take back": Both.take_back,
    "forget": Both.forget,
    "restart": Both.restart,
}
STEPS = st.tuples(
    st.sampled_from([*WAYS, "join", "join", "write", "write", "commit", "finish"]),
    st.sampled_from(["first", "second", "third"]),
    st.integers(NO_KEY, 3),
    st.integers(0, 63),
)


@given(many(STEPS, 60))
def test_the_table_does_what_a_dumb_model_does(steps: list[tuple[str, str, int, int]]) -> None:
    both = Both()
    for way, run, key, pick in steps:
        WAYS[way](both, run, key, pick)
        both.check()
