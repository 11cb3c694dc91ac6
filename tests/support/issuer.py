"""An authorization server for tests: its keys, its tokens, and where its keys are found."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import jwt
from anyio.abc import SocketAttribute, SocketStream
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_key
from jwt.algorithms import ECAlgorithm

ISSUER = "https://id.example/realm"
AUDIENCE = "https://gateway.example/mcp"


class Issuer:
    """Signs tokens with the newest of its keys.

    Attributes:
        fetches: how often its keys were asked for.
        available: whether it answers.
    """

    def __init__(self) -> None:
        self.keys: dict[str, EllipticCurvePrivateKey] = {}
        self.fetches = 0
        self.available = True
        self.rotate("k1")

    def rotate(self, key: str) -> None:
        """Sign with a new key from here on, and withdraw the old ones."""
        self.keys = {key: new_key(SECP256R1())}

    def jwks(self) -> str:
        keys: list[Any] = []
        for id_, key in self.keys.items():
            public: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
            keys.append({**public, "kid": id_, "use": "sig", "alg": "ES256"})
        return json.dumps({"keys": keys})

    def token(self, agent: object = "ada", lifetime: float = 60, **claims: object) -> str:
        """Return a token; a claim that is `None` is left out."""
        [(id_, key)] = self.keys.items()
        payload = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": int(time.time() + lifetime),
            "seriatim_agent": agent,
            **claims,
        }
        said = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(said, key, algorithm="ES256", headers={"kid": id_})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve the keys, and yield their URL."""

        async def answer(stream: SocketStream) -> None:
            async with stream:
                await stream.receive()
                self.fetches += 1
                body = self.jwks() if self.available else "down"
                status = "200 OK" if self.available else "503 Service Unavailable"
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                await stream.send((head + body).encode())

        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/keys"
            tasks.cancel_scope.cancel()
