"""The runs: each model with all its rules on, in several bounds; and with each rule off, in bounds that show
what it is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.models.tlc import Found, Model

ON, OFF = "TRUE", "FALSE"


def on(*rules: str) -> dict[str, str]:
    """All these rules, switched on."""
    return dict.fromkeys(rules, ON)


REPLICATION = Model(
    "Replication",
    {
        "Replicas": "{a, b, c}", "a": "a", "b": "b", "c": "c", "First": "a",
        "MaxEpoch": "2", "MaxLen": "1", "MaxCrash": "0", "MaxLoss": "0", "MaxWrites": "1",
        "MinInSync": "1", "CutRule": '"exact"',
        **on("CountBeforeWrite", "CountUntilKnown", "UnchangedProvesNothing", "CompareIncarnation",
             "OneAtATime", "RemoveUnclean", "KeepMin", "ElectInSyncOnly", "NewEpochEachLife",
             "JoinAtEpochStart", "AwaitAll", "RefuseOldEpoch"),
    },
    ("OneHistory", "LeaderHasAll", "ShownStays", "OneLeader", "SomebodyIsInSync"),
)  # fmt: skip

TRANSACTIONS = Model(
    "Transactions",
    {
        "Parts": "{p}", "p": "p", "q": "q", "Nobody": "Nobody", "MaxTx": "1", "MaxJ": "2", "MaxP": "1",
        "MaxHand": "0", "Forgets": OFF,
        **on("AddDurable", "AbortDurable", "DiscardDurable", "Fence", "PreparedEpoch", "Raise",
             "LostByEpoch", "FirstEpochStays", "Barrier", "FinalAck", "Confirm", "PromiseEpoch",
             "OpenGoesOn", "HandoverStops", "HandoverVoid", "HandoverReaches", "HandoverToken",
             "HandoverFences",
             "TellNewer", "FinishedStays", "DiscardSpares"),
    },
    ("AckedStays", "NeverTorn", "NeverAborted", "NeverTwice", "Exclusive", "NoGhost"),
)  # fmt: skip

GROUP_ORDER = Model(
    "GroupOrder",
    {
        "Parts": "{p, q}", "p": "p", "q": "q", "MaxTx": "2", "MaxJ": "2", "MaxP": "1",
        **on("WaitsForEarlier", "NamesPredecessor", "EndsWhenDurable", "FinalIsDurable", "SkipsAborted"),
    },
    ("OneOrder", "NeverStuck"),
)  # fmt: skip

BOTH = "{p, q}"


@dataclass(frozen=True)
class Run:
    """A model with some constants changed. `is_caught`: TLC must find a violation, else it must find none.
    `is_long`: it takes more than ten seconds.
    """

    name: str
    model: Model
    changed: Mapping[str, str]
    is_caught: bool = False
    is_long: bool = False

    def is_as_expected(self, found: Found) -> bool:
        """Whether TLC has found what it must. If nothing must be found, it has to have tried everything."""
        return found.violated is not None if self.is_caught else found.is_whole


def held(name: str, model: Model, *, is_long: bool = False, **bounds: object) -> Run:
    """All rules on, in these bounds."""
    return Run(name, model, texts(bounds), is_long=is_long)


def broken(rule: str, model: Model, value: str = OFF, *, is_long: bool = False, **bounds: object) -> Run:
    """One rule off: caught."""
    return Run(f"without {rule}", model, {**texts(bounds), rule: value}, is_caught=True, is_long=is_long)


def spare(rule: str, model: Model, *, is_long: bool = False, **bounds: object) -> Run:
    """One rule off, and nothing is found: others cover for it, in these bounds."""
    return Run(f"without {rule}", model, {**texts(bounds), rule: OFF}, is_long=is_long)


def texts(bounds: Mapping[str, object]) -> dict[str, str]:
    """Constants as TLC reads them."""
    return {name: str(value) for name, value in bounds.items()}


HELD = [
    held("a crash", REPLICATION, is_long=True, MaxLen=2, MaxCrash=1),
    held("a loss of what was acked", REPLICATION, is_long=True, MaxLoss=1, MaxWrites=2),
    held("a loss, and two must have it", REPLICATION, is_long=True, MaxLoss=1, MaxWrites=2, MinInSync=2),
    held("three epochs", REPLICATION, is_long=True, MaxEpoch=3),
    held("both sides fail over", TRANSACTIONS),
    held("two in a row", TRANSACTIONS, is_long=True, MaxTx=2, MaxP=0),
    held("two participants", TRANSACTIONS, is_long=True, Parts=BOTH, MaxP=0),
    held("two participants fail over", TRANSACTIONS, is_long=True, Parts=BOTH, MaxJ=1, MaxP=2),
    held("two participants, both sides fail over", TRANSACTIONS, is_long=True, Parts=BOTH),
    held("a handover", TRANSACTIONS, is_long=True, MaxHand=1),
    held("two in a row, forgotten", TRANSACTIONS, MaxTx=2, MaxJ=1, MaxP=0, Forgets=ON),
    held("two in a row, forgotten, J fails over", TRANSACTIONS, is_long=True, MaxTx=2, MaxP=0, Forgets=ON),
    held("two in a group", GROUP_ORDER, MaxJ=1),
    held("two in a group, J fails over", GROUP_ORDER, is_long=True),
]

CAUGHT = [
    broken("ElectInSyncOnly", REPLICATION),
    broken("AwaitAll", REPLICATION, MaxWrites=0, MinInSync=2),
    broken("RemoveUnclean", REPLICATION, MaxLoss=1, MaxWrites=0),
    broken("CountBeforeWrite", REPLICATION, is_long=True, MaxWrites=2),
    broken("CountUntilKnown", REPLICATION),
    broken("UnchangedProvesNothing", REPLICATION, is_long=True, MaxWrites=2),
    broken("NewEpochEachLife", REPLICATION, MaxCrash=1, MaxWrites=0),
    broken("CutRule", REPLICATION, '"none"', MaxWrites=0),
    broken("CutRule", REPLICATION, '"tail"', MaxWrites=0),
    broken("CutRule", REPLICATION, '"known"', is_long=True, MaxEpoch=3),
    broken("JoinAtEpochStart", REPLICATION, is_long=True, MaxEpoch=3, MaxWrites=2),
    broken("CompareIncarnation", REPLICATION, is_long=True, MaxLoss=1, MaxWrites=2),
    broken("RefuseOldEpoch", REPLICATION),
    broken("KeepMin", REPLICATION, MaxLoss=1, MaxWrites=2, MinInSync=2),
    broken("OneAtATime", REPLICATION, is_long=True, MaxLoss=1, MaxWrites=2),
    broken("AddDurable", TRANSACTIONS, Parts=BOTH, MaxP=0),
    broken("AbortDurable", TRANSACTIONS, MaxTx=2, MaxP=0),
    broken("LostByEpoch", TRANSACTIONS, MaxJ=1),
    broken("FirstEpochStays", TRANSACTIONS, MaxJ=1),
    broken("Barrier", TRANSACTIONS, MaxJ=1, MaxP=2),
    broken("FinalAck", TRANSACTIONS, MaxP=0),
    broken("Confirm", TRANSACTIONS, MaxTx=2, MaxP=0),
    broken("PromiseEpoch", TRANSACTIONS, is_long=True, Parts=BOTH),
    broken("HandoverStops", TRANSACTIONS, MaxHand=1),
    broken("HandoverVoid", TRANSACTIONS, MaxHand=1),
    broken("HandoverReaches", TRANSACTIONS, MaxHand=1),
    broken("HandoverToken", TRANSACTIONS, MaxTx=2, MaxJ=1, MaxP=0, MaxHand=2),
    broken("TellNewer", TRANSACTIONS, MaxTx=2, MaxP=0, Forgets=ON),
    broken("FinishedStays", TRANSACTIONS, MaxTx=2, MaxP=0, Forgets=ON),
    broken("DiscardSpares", TRANSACTIONS, is_long=True, MaxTx=2, MaxP=0, Forgets=ON),
    broken("NamesPredecessor", GROUP_ORDER, MaxJ=1, MaxP=0),
    broken("EndsWhenDurable", GROUP_ORDER, MaxJ=1),
    broken("FinalIsDurable", GROUP_ORDER, is_long=True),
    broken("SkipsAborted", GROUP_ORDER),
]

SPARE = [
    # What names its predecessor can't overtake it, whatever is sent early.
    spare("WaitsForEarlier", GROUP_ORDER, is_long=True),
    # A coordinator prepares what it inherits, so it aborts nothing that a deposed one could still commit.
    spare("Fence", TRANSACTIONS, is_long=True, Parts=BOTH),
    spare("HandoverFences", TRANSACTIONS, is_long=True, MaxHand=1),
    # DISCARD of a deposed coordinator: its successor knows of the abort, or the fence refuses it.
    spare("DiscardDurable", TRANSACTIONS, is_long=True, Parts=BOTH, MaxP=0),
    # A second belt: what leaves a deposed coordinator is durable, so its successor knows it.
    spare("PreparedEpoch", TRANSACTIONS, is_long=True, Parts=BOTH, MaxP=0),
    spare("Raise", TRANSACTIONS, is_long=True, Parts=BOTH, MaxP=0),
    # Aborting all that is open after a takeover is safe as well, even if ADDs need not be durable.
    spare("OpenGoesOn", TRANSACTIONS, MaxP=0, AddDurable=OFF),
]
