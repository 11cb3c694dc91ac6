"""Certificates for tests, of the one address that gateways in tests have."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from seriatim.runtime.gateway.tls import Tls, load_tls


def write_key(
    path: Path, key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption
) -> None:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


def write_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate and its key, and return their files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "seriatim test")])
    today = datetime.now(UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = directory / "certificate.pem", directory / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    write_key(key_file, key, NoEncryption())
    return certificate_file, key_file


def make_certificate(directory: Path) -> tuple[Path, Tls]:
    """Write a certificate, and return its file and encryption under it."""
    certificate, key = write_certificate(directory)
    return certificate, load_tls(certificate, key)
