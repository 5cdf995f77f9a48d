"""Variables that Kubernetes sets for services that are called faircopy."""

from __future__ import annotations

SERVICE = {
    "FAIRCOPY_SERVICE_HOST": "10.0.171.239",
    "FAIRCOPY_SERVICE_PORT": "9092",
    "FAIRCOPY_SERVICE_PORT_KAFKA": "9092",
    "FAIRCOPY_SERVICE_PORT_KAFKA_OUTSIDE": "9094",
    "FAIRCOPY_PORT": "tcp://10.0.171.239:9092",
    "FAIRCOPY_PORT_9092_TCP": "tcp://10.0.171.239:9092",
    "FAIRCOPY_PORT_9092_TCP_PROTO": "tcp",
    "FAIRCOPY_PORT_9092_TCP_PORT": "9092",
    "FAIRCOPY_PORT_9092_TCP_ADDR": "10.0.171.239",
    "FAIRCOPY_PORT_53_UDP_ADDR": "10.0.171.239",
}
OTHERS = {name.replace("FAIRCOPY_", "FAIRCOPY_HEADLESS_2_"): value for name, value in SERVICE.items()}

KUBERNETES = SERVICE | OTHERS
