"""rsyslog takes its messages from a topic and sends them to another, with its two modules for Kafka."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.greeting import ensure_each_is_greeted
from tests.ecosystem.packages.debian import DEBIAN, libraries
from tests.ecosystem.program import ForeignProgram
from tests.fetch.needed import needed

CONFIGURATION = """
module(load="imkafka")
module(load="omkafka")
template(name="greeting" type="string" string="hello %rawmsg%")
input(type="imkafka" topic="names" broker="BROKER" consumergroup="greeters"
      confParam=["auto.offset.reset=earliest"] ruleset="greet")
ruleset(name="greet") {
    action(type="omkafka" topic="greetings" broker="BROKER" template="greeting")
}
"""


def test_rsyslog(tmp_path: Path) -> None:
    """Each message is sent on once, also after a stop in order and kill -9 of the broker."""
    ensure_each_is_greeted(tmp_path, lambda broker: rsyslog(broker, tmp_path))


def rsyslog(broker: str, directory: Path) -> ForeignProgram:
    """The daemon, in the foreground."""
    packages = needed(DEBIAN["rsyslog"].find)
    configuration = directory / "rsyslog.conf"
    configuration.write_text(CONFIGURATION.replace("BROKER", broker))
    (modules,) = packages.glob("usr/lib/*/rsyslog")
    command = [str(packages / "usr" / "sbin" / "rsyslogd"), "-n", "-f", str(configuration)]
    command += ["-i", str(directory / "rsyslog.pid"), "-M", str(modules)]
    return ForeignProgram(command, directory / "program", LD_LIBRARY_PATH=libraries(packages))
