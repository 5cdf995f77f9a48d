"""How etcd lets a client in: over TLS, and with a token for the name of a user and the password.

etcd looks at no client certificate's common name here: behind its JSON gateway only tokens tell users apart.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from faircopy.errors import FaircopyError

NO_TOKEN = ""
STALE = ("invalid auth token", "user name is empty", "revision of auth store is old")
"""What etcd says if a token has expired, or is one of before it was started again; if it has come to have
users since; if a user or a role has changed. It has not done then what it was asked for.
"""
WITHOUT_USERS = "authentication is not enabled"
CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
TLS_ADVICE = "Look at arbiter.tls.ca.file, arbiter.tls.cert.file and arbiter.tls.key.file"


class EtcdRefused(FaircopyError):
    """etcd has understood a request and does not do it. `status` is that of HTTP, `code` that of gRPC."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"etcd refuses: {message}")
        self.status = status
        self.code = code
        self.message = message


@dataclass
class EtcdAccess:
    """What one process shows to etcd. All its clients share a token, which all members of etcd take.

    `token` is None if one has to be asked for. `tls` is None for connections without TLS.
    """

    tls: ssl.SSLContext | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    token: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.token = None if self.user else NO_TOKEN

    def url(self, scheme: str, address: str, path: str) -> str:
        """The URL of a request; `scheme` is the one without TLS."""
        return f"{scheme}{'s' if self.tls else ''}://{address}/v3/{path}"

    def hint(self, error: BaseException) -> str:
        """What may be behind the end of a connection: etcd ends it if it is spoken to with TLS, or without,
        and expects the other. It may also be about to start.
        """
        if not isinstance(error.__cause__, ConnectionResetError) and "disconnected" not in str(error):
            return ""
        other = "TLS, give arbiter as etcds://" if self.tls is None else "no TLS, give arbiter as etcd://"
        return f". If it speaks {other}"

    def is_stale(self, token: str, message: str) -> bool:
        """Whether etcd has refused a request for its token. Then another one is asked for next."""
        if not self.user or not any(each in message for each in STALE):
            return False
        if self.token == token:
            self.token = None
        return True

    def why_refused(self, message: str, prefix: str) -> str | None:
        """What to do about a refusal, if etcd refuses this client; None if it refuses only the request."""
        if "permission denied" in message:
            return (
                f"etcd does not let {self.user or 'this broker'} read and write the keys that begin with "
                f"{prefix}: grant it a role that may (etcdctl role grant-permission ROLE --prefix=true "
                f"readwrite {prefix})"
            )
        if "authentication failed" in message:
            return (
                f"etcd does not know the user {self.user} with the password in arbiter.password.file: "
                f"correct arbiter.user or the file, or create the user (etcdctl user add {self.user})"
            )
        if not self.user and "user name is empty" in message:
            return "etcd lets only its users in: give one as arbiter.user, and arbiter.password.file"
        if "CommonName of client" in message:
            return (
                "etcd has users, and refuses a client certificate with a common name then: give one without "
                "as arbiter.tls.cert.file (its subject may be O=faircopy)"
            )
        return None


def certificate_trouble(error: BaseException) -> str | None:
    """What is wrong with a certificate, ours or etcd's, or with TLS itself, by an error of aiohttp's; None if
    it is something else. Nothing was sent then, or nothing that etcd has looked at.
    """
    cause = error.__cause__
    if not isinstance(cause, ssl.SSLError):
        return None
    reason = getattr(cause, "reason", None) or ""  # only OpenSSL's own errors have one
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message})"
    if "ALERT" in reason and any(each in reason for each in CERTIFICATE_ALERTS):
        return f"it refuses this broker's certificate ({reason.lower().replace('_', ' ')})"
    if "WRONG_VERSION_NUMBER" in reason:
        return "it does not speak TLS"
    return None
