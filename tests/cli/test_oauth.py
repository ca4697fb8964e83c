"""OAuth with a real token server and brokers that check its tokens."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.cli.test_commands import Command, s3sink
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

__all__ = ["s3sink"]
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
LISTENER = "listener.name.sasl_ssl"
CLIENT, PASSWORD = "orders", "client-secret"


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Issuer:
    """Issues tokens to one client, over https."""

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked = 0
        self.authority = trustme.CA()
        self.keys = folder / "jwks.json"
        public = self._key.public_key().public_numbers()
        numbers = {"n": encoded(public.n.to_bytes(256, "big")), "e": encoded(public.e.to_bytes(3, "big"))}
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", **numbers}
        self.keys.write_text(json.dumps({"keys": [key]}))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("localhost").configure_cert(context)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.server.server_address[1]}/token"

    def token(self) -> str:
        now = int(time.time())
        parts = [{"alg": "RS256", "kid": "one"}, {"sub": CLIENT, "iat": now, "exp": now + 3600, "scope": "kafka"}]
        text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{encoded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self
        right = "Basic " + base64.b64encode(f"{CLIENT}:{PASSWORD}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                issuer.asked += 1
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                known = self.headers["Authorization"] == right
                answer = json.dumps({"access_token": issuer.token(), "expires_in": 3600} if known else {}).encode()
                self.send_response(200 if known else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    made = Issuer(tmp_path)
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def brokers(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaBroker]:
    keys = issuer.keys.as_uri()
    prefix = f"{LISTENER}.oauthbearer"
    config = {
        f"{LISTENER}.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        f"{prefix}.sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.server.callback.handler.class": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": keys,
    }
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}")
        broker = KafkaBroker(secure=True, config=config)
        broker.__enter__()
    try:
        yield broker
    finally:
        broker.__exit__(None, None, None)


@pytest.mark.slow
@pytest.mark.spark
def test_oauth_tokens_are_fetched_from_the_configured_url(
    s3sink: Command, brokers: KafkaBroker, issuer: Issuer, s3: S3Server, bucket: str, topic_name: str
) -> None:
    brokers.create_topic(topic_name)
    brokers.produce(topic_name, [(None, b"%d" % n, None, None) for n in range(5)])
    authority = issuer.authority.cert_pem.bytes().decode().replace("\n", "\\n")
    login = (
        f'{PACKAGE}.OAuthBearerLoginModule required clientId="{CLIENT}" clientSecret="{PASSWORD}" scope="kafka"\n'
        f'  ssl.truststore.type="PEM" ssl.truststore.certificates="{authority}";'
    )
    source = {
        "bootstrapServers": brokers.secure.bootstrap,
        "topics": [topic_name],
        "properties": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": issuer.url,
            "ssl.truststore.type": "PEM",
        },
        "propertiesFrom": [{"secretRef": {"name": "auth"}}],
    }
    destination = {
        "bucket": bucket,
        "endpoint": s3.endpoint,
        "region": s3.region,
        "credentials": {"secretRef": {"name": "s3"}},
    }
    secrets = {
        "auth": {"sasl.jaas.config": login, "ssl.truststore.certificates": brokers.secure.ca_pem},
        "s3": {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key},
    }
    file = s3sink.write(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "oauth"},
            "spec": {"source": source, "destination": destination, "format": {"type": "Json"}},
        },
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
            for name, data in secrets.items()
        ),
    )
    run = s3sink("run", file, "--once")
    assert run.returncode == 0, run.stderr
    assert issuer.asked
    (key,) = [o["Key"] for o in s3.client().list_objects_v2(Bucket=bucket)["Contents"] if "jsonl" in o["Key"]]
    assert s3.client().get_object(Bucket=bucket, Key=key)["Body"].read() == b"0\n1\n2\n3\n4\n"
    assert PASSWORD not in run.stderr
