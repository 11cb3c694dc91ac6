"""Encryption of the gateway's HTTP side, by certificate files."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates


@final
@dataclass(frozen=True, slots=True)
class Plain:
    """Nothing is encrypted."""

    scheme: str = "http"


@final
@dataclass(frozen=True, slots=True)
class Tls:
    """All is encrypted, under a certificate."""

    context: ssl.SSLContext
    scheme: str = "https"


Encryption: TypeAlias = Plain | Tls
"""How what goes over the wire is kept from others."""


class CertificateError(Exception):
    """A certificate file or a key file cannot be used; the message names it and says why.

    Attributes:
        hint: the way out.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint: Final = hint


def load_tls(certificate: Path, key: Path) -> Tls:
    """Return encryption under the certificate and the key in two PEM files.

    Raises:
        CertificateError: when one cannot be read, is no such thing, or they do not belong together.
    """
    _check_certificate(certificate)
    _check_key(key)
    # TLS 1.2 and newer, and no client certificates.
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise CertificateError(
            f"the key `{key}` does not belong to the certificate `{certificate}`",
            "give the key with which the certificate was made; its own certificate stands first",
        ) from error
    return Tls(context)


def _check_certificate(path: Path) -> None:
    try:
        load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise CertificateError(
            f"`{path}` holds no PEM certificate",
            "give a file that begins with `-----BEGIN CERTIFICATE-----`",
        ) from error


def _check_key(path: Path) -> None:
    try:
        load_pem_private_key(_read(path), password=None)
    except TypeError as error:
        raise CertificateError(
            f"the key `{path}` is encrypted", "give a key without a passphrase"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError(
            f"`{path}` holds no PEM private key",
            "give a file that begins with `-----BEGIN PRIVATE KEY-----`",
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise CertificateError(f"cannot read `{path}`: {reason}", "give another file") from error
