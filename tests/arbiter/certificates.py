"""Certificates for the tests of TLS, made by the command openssl."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.requirements import missing

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
NO_NAME = "/O=faircopy"
"""A subject without a common name."""
FOR_BOTH = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
"""etcd's gateway is a client of its own server, with the same certificate."""


class Certified(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates, and trusts those that it has signed."""

    def __init__(self, directory: Path, name: str) -> None:
        """Skips the test where there is no openssl."""
        if shutil.which("openssl") is None:
            missing("no openssl on PATH to make certificates")
        self._own = Certified(directory / f"{name}.pem", directory / f"{name}.key")
        self._directory = directory
        openssl("req", "-x509", *KEY, "-noenc", *outputs(self._own), "-days", "2", "-subj", f"/CN={name}")

    @property
    def file(self) -> Path:
        """What whoever trusts it is given."""
        return self._own.certificate

    def certify(self, name: str, subject: str = NO_NAME, passphrase: str = "") -> Certified:
        """A new certificate; `name` is for its files."""
        made = Certified(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        request, extensions = made.key.with_suffix(".request"), made.key.with_suffix(".extensions")
        extensions.write_text(FOR_BOTH)
        secrecy = ("-passout", f"pass:{passphrase}") if passphrase else ("-noenc",)
        openssl("req", *KEY, *secrecy, *outputs(Certified(request, made.key)), "-subj", subject)
        openssl(
            "x509", "-req", "-in", str(request), "-out", str(made.certificate), "-days", "2",
            "-CA", str(self.file), "-CAkey", str(self._own.key), "-CAcreateserial",
            "-extfile", str(extensions),
        )  # fmt: skip
        return made

    def tls(self, client: Certified) -> ssl.SSLContext:
        """How this client speaks TLS with whom this authority has certified."""
        context = ssl.create_default_context(cafile=self.file)
        context.load_cert_chain(*client)
        return context


def outputs(made: Certified) -> tuple[str, ...]:
    """Arguments of openssl's."""
    return ("-out", str(made.certificate), "-keyout", str(made.key))


def openssl(*arguments: str) -> None:
    """Run it."""
    run = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
