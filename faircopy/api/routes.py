"""All APIs that a broker serves. A new API is one file, and one line here (docs/ADDING_AN_API.md)."""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.api.add_offsets_to_txn import ROUTE as ADD_OFFSETS_TO_TXN
from faircopy.api.add_partitions_to_txn import ROUTE as ADD_PARTITIONS_TO_TXN
from faircopy.api.alter_configs import ROUTE as ALTER_CONFIGS
from faircopy.api.alter_partition_reassignments import ROUTE as ALTER_PARTITION_REASSIGNMENTS
from faircopy.api.api_versions import ROUTE as API_VERSIONS
from faircopy.api.backup import ROUTE as BACKUP
from faircopy.api.consumer_group_heartbeat import ROUTE as CONSUMER_GROUP_HEARTBEAT
from faircopy.api.create_partitions import ROUTE as CREATE_PARTITIONS
from faircopy.api.create_topics import ROUTE as CREATE_TOPICS
from faircopy.api.cut import ROUTE as CUT
from faircopy.api.delete_groups import ROUTE as DELETE_GROUPS
from faircopy.api.delete_records import ROUTE as DELETE_RECORDS
from faircopy.api.delete_topics import ROUTE as DELETE_TOPICS
from faircopy.api.describe_acls import ROUTE as DESCRIBE_ACLS
from faircopy.api.describe_client_quotas import ROUTE as DESCRIBE_CLIENT_QUOTAS
from faircopy.api.describe_cluster import ROUTE as DESCRIBE_CLUSTER
from faircopy.api.describe_configs import ROUTE as DESCRIBE_CONFIGS
from faircopy.api.describe_groups import ROUTE as DESCRIBE_GROUPS
from faircopy.api.describe_log_dirs import ROUTE as DESCRIBE_LOG_DIRS
from faircopy.api.describe_producers import ROUTE as DESCRIBE_PRODUCERS
from faircopy.api.describe_quorum import ROUTE as DESCRIBE_QUORUM
from faircopy.api.describe_topic_partitions import ROUTE as DESCRIBE_TOPIC_PARTITIONS
from faircopy.api.describe_transactions import ROUTE as DESCRIBE_TRANSACTIONS
from faircopy.api.elect_leaders import ROUTE as ELECT_LEADERS
from faircopy.api.end_joint_transaction import ROUTE as END_JOINT_TRANSACTION
from faircopy.api.end_txn import ROUTE as END_TXN
from faircopy.api.fetch.fetch import ROUTE as FETCH
from faircopy.api.find_coordinator import ROUTE as FIND_COORDINATOR
from faircopy.api.forget_transaction_group import ROUTE as FORGET_TRANSACTION_GROUP
from faircopy.api.heartbeat import ROUTE as HEARTBEAT
from faircopy.api.incremental_alter_configs import ROUTE as INCREMENTAL_ALTER_CONFIGS
from faircopy.api.init_producer_id import ROUTE as INIT_PRODUCER_ID
from faircopy.api.inspect import ROUTE as INSPECT
from faircopy.api.join_group import ROUTE as JOIN_GROUP
from faircopy.api.join_transaction import ROUTE as JOIN_TRANSACTION
from faircopy.api.leave_group import ROUTE as LEAVE_GROUP
from faircopy.api.list_config_resources import ROUTE as LIST_CONFIG_RESOURCES
from faircopy.api.list_groups import ROUTE as LIST_GROUPS
from faircopy.api.list_offsets import ROUTE as LIST_OFFSETS
from faircopy.api.list_partition_reassignments import ROUTE as LIST_PARTITION_REASSIGNMENTS
from faircopy.api.list_transactions import ROUTE as LIST_TRANSACTIONS
from faircopy.api.metadata import ROUTE as METADATA
from faircopy.api.offset_commit import ROUTE as OFFSET_COMMIT
from faircopy.api.offset_delete import ROUTE as OFFSET_DELETE
from faircopy.api.offset_fetch import ROUTE as OFFSET_FETCH
from faircopy.api.offset_for_leader_epoch import ROUTE as OFFSET_FOR_LEADER_EPOCH
from faircopy.api.produce.produce import ROUTE as PRODUCE
from faircopy.api.spans import ROUTE as SPANS
from faircopy.api.sync_group import ROUTE as SYNC_GROUP
from faircopy.api.txn_offset_commit import ROUTE as TXN_OFFSET_COMMIT
from faircopy.serving.route import HotRoute, Route
from faircopy.wire.schema import Schema

ROUTES: dict[int, Route | HotRoute] = {
    route.schema.api_key: route for route in list(globals().values()) if isinstance(route, Route | HotRoute)
}
FLEXIBLE_FROM: dict[int, int] = {api_key: route.schema.flexible_from for api_key, route in ROUTES.items()}
"""The first flexible version of each API, which decides how a request's header is read."""


def advertised(routes: Mapping[int, Route | HotRoute] = ROUTES) -> dict[int, range]:
    """The advertised versions, by API key."""
    public = (route for route in routes.values() if isinstance(route, HotRoute) or route.is_advertised)
    return {
        route.schema.api_key: route.versions
        for route in sorted(public, key=lambda route: route.schema.api_key)
    }


def schema_of(api_key: int) -> Schema:
    """The messages of an API. Raises KeyError."""
    return ROUTES[api_key].schema
