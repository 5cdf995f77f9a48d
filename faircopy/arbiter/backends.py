"""The backend of the arbiter that settings ask for. Sets share a store: the keys of each are its own."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import NoReturn

from faircopy.arbiter.address import ArbiterOptions, check_options, check_set_name
from faircopy.arbiter.backend import Backend
from faircopy.arbiter.etcd_access import EtcdAccess
from faircopy.arbiter.lmdb_backend import LmdbBackend
from faircopy.settings.table import BadSetting
from faircopy.storage.filesystem import network_file_system

PREFIX = "/faircopy/"
INSTALLING = "pip install '.[etcd]'"


def open_backend(
    options: ArbiterOptions, set_name: str, process_name: str, loop: asyncio.AbstractEventLoop
) -> Backend:
    """A process's way to the keys of a set. `process_name` is for a file name, and no other process has it,
    ever. Blocks. Raises BadSetting, and errors of the storage.
    """
    check_options(options)
    check_set_name(set_name)
    if options.address.kind == "lmdb":
        return open_lmdb(Path(options.address.directory), set_name, process_name, loop)
    return open_etcd(options, set_name)


def open_lmdb(
    directory: Path, set_name: str, process_name: str, loop: asyncio.AbstractEventLoop
) -> LmdbBackend:
    """A store in a directory of this machine."""
    if (kind := network_file_system(directory)) is not None:
        raise BadSetting(
            f"arbiter is lmdb:{directory}, which is on a file system that several machines may see ({kind}): "
            f"its locks are for processes of one machine. Give a directory of a local disk, or an etcd"
        )
    return LmdbBackend(directory / set_name, process_name, loop)


def open_etcd(options: ArbiterOptions, set_name: str) -> Backend:
    """A client of an etcd, which has not asked for anything yet."""
    try:
        from faircopy.arbiter.etcd_backend import EtcdBackend
    except ImportError as error:
        raise BadSetting(
            f"arbiter is {options.address}, and etcd needs a package that is not there ({error.name}): "
            f"install faircopy with its extra for etcd, as with {INSTALLING} in a checkout"
        ) from error
    addresses = [str(host) for host in options.address.hosts]
    return EtcdBackend(addresses, f"{PREFIX}{set_name}/", etcd_access(options))


def etcd_access(options: ArbiterOptions) -> EtcdAccess:
    """What a process shows to etcd. Files are read now, and not again. Raises BadSetting."""
    password = read_password(options.password_file) if options.user else ""
    return EtcdAccess(tls_context(options) if options.address.is_tls else None, options.user, password)


def read_password(file: str) -> str:
    """The password in a file, without the end of its line. Raises BadSetting."""
    try:
        password = read("arbiter.password.file", file).decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise BadSetting(f"arbiter.password.file is {file}, which is not UTF-8") from error
    if not password or "\n" in password:
        raise BadSetting(f"arbiter.password.file is {file}, which has not one line: give a file with one")
    return password


def tls_context(options: ArbiterOptions) -> ssl.SSLContext:
    """How to speak TLS with etcd. Raises BadSetting."""
    ca_file, certificate, key = options.tls_ca_file, options.tls_cert_file, options.tls_key_file
    if ca_file:
        read("arbiter.tls.ca.file", ca_file)
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except ssl.SSLError as error:
        raise BadSetting(f"arbiter.tls.ca.file is {ca_file}, which has no certificates as PEM") from error
    if certificate:
        read("arbiter.tls.cert.file", certificate)
        read("arbiter.tls.key.file", key)
        load_certificate(context, certificate, key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Raises BadSetting."""

    def refuse_passphrase() -> NoReturn:  # OpenSSL would ask for it on the terminal
        raise BadSetting(
            f"arbiter.tls.key.file is {key}, which has a passphrase: give a key without (openssl pkey)"
        )

    try:
        context.load_cert_chain(certificate, key, refuse_passphrase)
    except ssl.SSLError as error:
        raise BadSetting(
            f"arbiter.tls.cert.file is {certificate}, and arbiter.tls.key.file is {key}: these are not a "
            f"certificate and its key as PEM ({error.reason})"
        ) from error


def read(setting: str, file: str) -> bytes:
    """The content of the file that a setting names. Raises BadSetting."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadSetting(f"{setting} is {file}, which can't be read: {error.strerror}") from error
