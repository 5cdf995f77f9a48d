"""DescribeConfigs: the settings of topics and brokers, each with its source (KIP-133, KIP-226)."""

from __future__ import annotations

from faircopy.catalogue.dynamic_settings import CHANGEABLE, DEFAULT, DynamicSettings
from faircopy.catalogue.topic_configs import CONFIGS, ConfigType
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topic import HostedTopic, broker_default
from faircopy.serving.codes import code_of, message_of
from faircopy.serving.config_resources import TOPIC, broker_resource
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.settings.kafka_names import THEIRS, WITHOUT_EFFECT
from faircopy.settings.table import FIELDS, Settings
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 32 DescribeConfigs 1-4 flexible 4+
  request
    resources               []
        resource_type       int8
        resource_name       string
        configuration_keys  []string?
    include_synonyms        bool              = false
    include_documentation   bool       3+     = false
  response
    throttle_time_ms        int32             = 0
    results                 []
        error_code          int16
        error_message       string?           = null
        resource_type       int8
        resource_name       string
        configs             []
            name            string
            value           string?
            read_only       bool
            config_source   int8              = -1
            is_sensitive    bool
            synonyms        []
                name        string
                value       string?
                source      int8
            config_type     int8       3+     = 0
            documentation   string?    3+     = null
""")


SOURCE_TOPIC, SOURCE_DYNAMIC_BROKER, SOURCE_DYNAMIC_DEFAULT, SOURCE_STATIC_BROKER, SOURCE_DEFAULT = range(
    1, 6
)
TYPES = {
    "bool": ConfigType.BOOLEAN,
    "str": ConfigType.STRING,
    "int": ConfigType.LONG,
    "float": ConfigType.DOUBLE,
}


async def describe_configs(request: Message, context: Context) -> Body:
    """DescribeConfigs. A resource that is requested twice is described once."""
    different = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    resources = context.pace.over(different.values())
    return {"results": [describe(context.parts, resource) async for resource in resources]}


def describe(parts: Parts, resource: Message) -> Body:
    """The settings of one resource, or why there are none."""
    answer = {
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": [],
    }
    try:
        rows = rows_of(parts, resource)
    except FaircopyError as error:
        return answer | {"error_code": code_of(error), "error_message": message_of(error)}
    wanted = resource.configuration_keys
    rows = [row for row in rows if wanted is None or row["name"] in wanted]
    return answer | {"error_code": ErrorCode.NONE, "configs": rows}


def rows_of(parts: Parts, resource: Message) -> list[Body]:
    """A row for each setting. Raises Refused, UnknownTopic."""
    if resource.resource_type == TOPIC:
        return topic_rows(parts.hosted.known(resource.resource_name), parts.settings)
    name = broker_resource(parts.settings, resource)
    return broker_rows(parts.dynamic_settings) if name != DEFAULT else default_rows(parts.dynamic_settings)


def topic_rows(hosted: HostedTopic, settings: Settings) -> list[Body]:
    """The settings of a topic."""
    return [
        {
            "name": name,
            "value": hosted.config(name),
            "read_only": False,
            "config_source": source_of(hosted, name, settings),
            "is_sensitive": False,
            "synonyms": [],
            "config_type": config.type,
            "documentation": config.about,
        }
        for name, config in CONFIGS.items()
    ]


def source_of(hosted: HostedTopic, name: str, settings: Settings) -> int:
    """The source of a topic's setting."""
    if name in hosted.topic.configs:
        return SOURCE_TOPIC
    default = broker_default(settings, name)
    return SOURCE_DEFAULT if default in (None, CONFIGS[name].default) else SOURCE_STATIC_BROKER


def broker_rows(dynamic: DynamicSettings) -> list[Body]:
    """The settings of this broker, and those of Kafka's that have no effect here."""
    settings = dynamic.settings
    mine, all_brokers = dynamic.of(str(settings.node_id)), dynamic.of(DEFAULT)

    def source(name: str, value: object, default: object) -> int:
        if name in mine:
            return SOURCE_DYNAMIC_BROKER
        if name in all_brokers:
            return SOURCE_DYNAMIC_DEFAULT
        return SOURCE_DEFAULT if value == default else SOURCE_STATIC_BROKER

    rows = []
    for name, field in FIELDS.items():
        value = getattr(settings, field.name)
        rows += named_rows(name, str(value), source(name, value, field.default))
    for name, unused in WITHOUT_EFFECT.items():
        value = mine.get(name, all_brokers.get(name, unused.default))
        rows.append(unused_row(name, value, source(name, value, unused.default)))
    return rows


def default_rows(dynamic: DynamicSettings) -> list[Body]:
    """Only the settings for all brokers, as in Kafka."""
    rows = []
    for name, value in dynamic.of(DEFAULT).items():
        if name in WITHOUT_EFFECT:
            rows.append(unused_row(name, value, SOURCE_DYNAMIC_DEFAULT))
        elif name in FIELDS:
            rows += named_rows(name, value, SOURCE_DYNAMIC_DEFAULT)
    return rows


def named_rows(name: str, value: str, source: int) -> list[Body]:
    """A setting of the broker, by our name, and by Kafka's if that is another."""
    field = FIELDS[name]
    kind, about = TYPES[str(field.type)], field.metadata["about"]
    row = broker_row(name, value, source, kind, about, is_changeable=name in CHANGEABLE)
    return [row, row | {"name": THEIRS[name]}] if name in THEIRS else [row]


def unused_row(name: str, value: str, source: int) -> Body:
    """A setting of Kafka's that has no effect here."""
    unused = WITHOUT_EFFECT[name]
    about = f"No effect here: {unused.why}"
    return broker_row(name, value, source, TYPES[unused.kind], about, is_changeable=not unused.is_fixed)


def broker_row(
    name: str, value: str, source: int, kind: ConfigType, about: str, *, is_changeable: bool
) -> Body:
    """A setting of the broker, as DescribeConfigs shows it."""
    return {
        "name": name,
        "value": value,
        "read_only": not is_changeable,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": kind,
        "documentation": about,
    }


ROUTE = Route(SCHEMA, describe_configs)
