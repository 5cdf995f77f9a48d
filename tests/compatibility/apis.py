"""The APIs of Kafka's protocol: those that are served, and why others are not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import faircopy.api
from faircopy.api.routes import ROUTES, advertised

REASONS = {
    "there is no authentication and no authorization yet": (
        "SaslHandshake", "SaslAuthenticate", "CreateAcls", "DeleteAcls", "CreateDelegationToken",
        "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
        "DescribeUserScramCredentials", "AlterUserScramCredentials",
    ),
    "there are no quotas yet": ("AlterClientQuotas",),
    "there is one directory for data": ("AlterReplicaLogDirs",),
    "faircopy collects no metrics of clients": ("GetTelemetrySubscriptions", "PushTelemetry"),
    "only the classic protocol of consumer groups is there": ("ConsumerGroupDescribe",),
    "there are no share groups": (
        "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge",
        "InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState",
        "DeleteShareGroupState", "ReadShareGroupStateSummary", "DescribeShareGroupOffsets",
        "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
    ),
    "Kafka Streams has its groups by the classic protocol": (
        "StreamsGroupHeartbeat", "StreamsGroupDescribe",
    ),
    "there are no features of a cluster to change": ("UpdateFeatures",),
    "Kafka's brokers and controllers have it among themselves": (
        "WriteTxnMarkers", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition", "Envelope",
        "FetchSnapshot", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker",
        "AllocateProducerIds", "ControllerRegistration", "AssignReplicasToDirs", "AddRaftVoter",
        "RemoveRaftVoter", "UpdateRaftVoter",
    ),
}  # fmt: skip
"""Why APIs of Kafka's are not served. A client that asks for one is refused by its own library, which sees
that it is not advertised.
"""


NEWER = {
    "Produce": "transactions v2 (KIP-890); from 13 on, topic ids as well",
    "ListOffsets": "tiered storage (KIP-1023)",
    "OffsetCommit": "topic ids, for the newer groups (KIP-848)",
    "OffsetFetch": "topic ids, for the newer groups (KIP-848)",
    "InitProducerId": "transactions with two phases (KIP-939)",
    "AddPartitionsToTxn": "requests of brokers to each other (KIP-890)",
    "EndTxn": "transactions v2 (KIP-890)",
    "TxnOffsetCommit": "transactions v2 (KIP-890)",
    "ListTransactions": "a regular expression (KIP-1152), which could hold up everybody",
}
"""What newer versions are for, of APIs that Kafka has in newer versions."""


def served() -> Iterator[tuple[int, str, str, str, str]]:
    """Of each API that is advertised: its key, name, versions, what it does here, and what is newer."""
    about = descriptions()
    for api_key, versions in advertised().items():
        name = ROUTES[api_key].schema.name
        offered = f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else str(versions[0])
        yield api_key, name, offered, about[name], NEWER.get(name, "")


def descriptions() -> dict[str, str]:
    """What each API does, by its name, in the words of its file."""
    found = {}
    for each in pkgutil.walk_packages(faircopy.api.__path__, "faircopy.api."):
        module = importlib.import_module(each.name)
        if hasattr(module, "ROUTE"):
            name = module.ROUTE.schema.name
            found[name] = sentence_about(name, (module.__doc__ or "").partition("\n\n")[0])
    return found


def sentence_about(name: str, docstring: str) -> str:
    """The first paragraph of a docstring, without the name that it begins with."""
    text = " ".join(docstring.split()).removeprefix(name).lstrip(":,. ")
    return text[:1].upper() + text[1:]
