"""syslog-ng follows a file, and sends its lines to a topic."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.ecosystem.packages.debian import DEBIAN, libraries
from tests.ecosystem.program import ForeignProgram
from tests.ecosystem.reader import TopicReader
from tests.fetch.needed import needed
from tests.finding import a_finding_if_not

LINES = 500
CONFIGURATION = """
@version: 3.38
source lines { file("FILE" flags(no-parse)); };
destination topic { kafka-c(bootstrap-servers("BROKER") topic("lines") message("$MESSAGE")); };
log { source(lines); destination(topic); };
"""


def test_syslog_ng(tmp_path: Path) -> None:
    """Each line arrives, in order and once, also after kill -9 of the broker."""
    file = tmp_path / "followed.log"
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "lines")
        file.touch()
        with (
            syslog_ng(broker.address, file, tmp_path) as program,
            TopicReader(broker.address, "lines") as reader,
        ):
            for first in range(0, 3 * LINES, LINES):
                with file.open("a") as appended:
                    appended.writelines(f"line {number}\n" for number in range(first, first + LINES))
                reader.until_there_are(first + LINES, program)
                broker.restart()
            with a_finding_if_not():
                expected = [b"line %d" % number for number in range(3 * LINES)]
                assert [message.value() for message in reader.messages] == expected
        broker.ensure_no_traceback()


def syslog_ng(broker: str, file: Path, directory: Path) -> ForeignProgram:
    """The daemon, in the foreground."""
    packages = needed(DEBIAN["syslog-ng"].find)
    configuration = directory / "syslog-ng.conf"
    configuration.write_text(CONFIGURATION.replace("BROKER", broker).replace("FILE", str(file)))
    (modules,) = packages.glob("usr/lib/syslog-ng/[0-9]*")
    command = [str(packages / "usr" / "sbin" / "syslog-ng"), "--foreground", "--no-caps"]
    command += ["--module-path", str(modules), "--cfgfile", str(configuration)]
    for option in ("persist-file", "control", "pidfile"):
        command += [f"--{option}", str(directory / f"syslog-ng.{option}")]
    return ForeignProgram(command, directory / "program", LD_LIBRARY_PATH=libraries(packages))
