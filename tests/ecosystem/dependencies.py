"""All that the foreign programs need from outside, except for what is too large for everybody."""

from __future__ import annotations

from tests.ecosystem.apicurio.installed import APICURIO
from tests.ecosystem.connect.installed import CONNECT, FILE
from tests.ecosystem.debezium.installed import DEBEZIUM
from tests.ecosystem.packages.debian import DEBIAN
from tests.ecosystem.packages.franz_go import FRANZ_GO
from tests.ecosystem.packages.node import NODE_PACKAGES
from tests.ecosystem.packages.python import LARGE, PACKAGES
from tests.ecosystem.postgres.installed import POSTGRES
from tests.ecosystem.spring.installed import SPRING_KAFKA, SPRING_STREAM
from tests.ecosystem.streams.installed import STREAMS

JARS = (STREAMS, CONNECT, FILE, DEBEZIUM, POSTGRES, APICURIO, SPRING_KAFKA, SPRING_STREAM)
OF_THE_ECOSYSTEM = (
    *JARS,
    *(each for each in PACKAGES.values() if each is not LARGE),
    NODE_PACKAGES,
    FRANZ_GO,
    *DEBIAN.values(),
)
