"""Certificate files: what is wrong with one is said, by its name."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption

from seriatim.runtime.gateway.tls import CertificateError, load_tls
from tests.support.certificates import write_certificate, write_key


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_certificate(tmp_path)


def problem_of(certificate: Path, key: Path) -> str:
    with pytest.raises(CertificateError) as problem:
        load_tls(certificate, key)
    assert problem.value.hint
    return str(problem.value)


def test_old_versions_of_tls_are_not_spoken(pair: tuple[Path, Path]) -> None:
    assert load_tls(*pair).context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_missing_file_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.pem"
    assert problem_of(nowhere, pair[1]) == f"cannot read `{nowhere}`: no such file or directory"
    assert problem_of(pair[0], nowhere) == f"cannot read `{nowhere}`: no such file or directory"


def test_a_file_that_holds_something_else_is_named(pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    assert problem_of(key, key) == f"`{key}` holds no PEM certificate"
    assert problem_of(certificate, certificate) == f"`{certificate}` holds no PEM private key"


def test_a_key_of_another_certificate_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    write_key(other, ec.generate_private_key(ec.SECP256R1()), NoEncryption())
    assert problem_of(pair[0], other) == (
        f"the key `{other}` does not belong to the certificate `{pair[0]}`"
    )


def test_an_encrypted_key_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret.pem"
    write_key(secret, ec.generate_private_key(ec.SECP256R1()), BestAvailableEncryption(b"x"))
    assert problem_of(pair[0], secret) == f"the key `{secret}` is encrypted"
