"""HTTPS: a certificate that is trusted is, one that is not keeps the episodes at home."""

import datetime
import ipaddress
import ssl

import pytest
from client.network import ScriptedServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gapwatch_client import Gapwatch

from parts import wait_until

REAL = {"task": "reach", "policy": "bin-pick@1.4.0", "deployment": "berlin-line-3"}


@pytest.fixture
def certificate(tmp_path):
    """Of this machine's own making, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gapwatch test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_episodes_go_out_over_https_only_to_whom_the_system_trusts(certificate, tmp_path, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ScriptedServer(tls=context) as server:
        with Gapwatch(server.url, "gw_test", tmp_path / "spool", linger_s=0) as gw:
            gw.episode(**REAL).end()
            wait_until(
                lambda: "CERTIFICATE_VERIFY_FAILED" in str(gw.status().get("last_error")), what="the refusal"
            )
            assert gw.status()["pending"]["real"] == 1
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with Gapwatch(server.url, "gw_test", tmp_path / "spool", linger_s=0) as gw:
            assert gw.flush()
        assert [len(request.records) for request in server.requests] == [1]
