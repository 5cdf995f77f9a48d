"""Sound messages of a link, of each type, as hypothesis makes them."""

from __future__ import annotations

import hypothesis.strategies as st

from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    Challenge,
    ComparedJournal,
    Comparison,
    Data,
    EndOfEpoch,
    Hello,
    MarkedJournal,
    Marks,
    Message,
    Refusal,
)
from faircopy.replication.soundness import CONTENT_BYTES_MAX, EPOCH_MAX, POSITION_MAX, SEED_MAX

positions = st.integers(0, 300) | st.integers(0, POSITION_MAX)
ordered = st.tuples(positions, positions).map(sorted)
brokers = epochs = st.integers(0, 4) | st.integers(0, EPOCH_MAX)
incarnations = st.integers(1, POSITION_MAX)
versions = st.integers(0, 0xFFFF)
identities = st.binary(min_size=20, max_size=20)
several = st.lists(identities, unique=True, max_size=5)
nonces = st.binary(min_size=32, max_size=32)


@st.composite
def compared(draw: st.DrawFn, identity: bytes) -> ComparedJournal:
    start, end = draw(ordered)
    named = sorted(draw(st.sets(epochs, max_size=4)))
    ends = sorted(draw(st.integers(0, end)) for _ in named)
    return ComparedJournal(identity, start, end, tuple(map(EndOfEpoch, named, ends)))


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    journals = tuple(draw(compared(each)) for each in draw(several))
    return Comparison(journals, draw(st.booleans()))


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    journals = []
    for identity in draw(several):
        synced, end = draw(ordered)
        journals.append(AlignedJournal(identity, end, synced, draw(positions)))
    return Alignment(tuple(journals), draw(st.booleans()))


@st.composite
def acks(draw: st.DrawFn) -> Acks:
    journals = []
    for identity in draw(several):
        synced, written = draw(ordered)
        journals.append(AckedJournal(identity, written, synced))
    return Acks(tuple(journals), draw(st.booleans()))


@st.composite
def marks(draw: st.DrawFn) -> Marks:
    journals = tuple(MarkedJournal(each, draw(positions)) for each in draw(several))
    in_sync = draw(st.dictionaries(brokers, positions, max_size=4))
    return Marks(draw(positions), draw(epochs), in_sync, journals)


challenges = st.builds(Challenge, nonces, versions)
hellos = st.builds(
    Hello, st.binary(min_size=16, max_size=16), brokers, incarnations, epochs, versions, nonces
)
data = st.builds(
    Data,
    identities,
    st.integers(0, POSITION_MAX - CONTENT_BYTES_MAX),
    st.integers(0, SEED_MAX),
    st.binary(min_size=1, max_size=300),
)
refusals = st.builds(Refusal, st.text(st.characters(codec="utf-8"), min_size=1, max_size=250))
messages: st.SearchStrategy[Message] = st.one_of(
    challenges, hellos, comparisons(), alignments(), data, acks(), marks(), refusals
)
