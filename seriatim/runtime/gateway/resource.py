"""The gateway as a protected resource (RFC 9728): where clients learn whom to ask for a token."""

from dataclasses import dataclass
from typing import final

from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl
from starlette.routing import Route

from seriatim.topology.models import Auth


@final
@dataclass(frozen=True, slots=True)
class Resource:
    """The gateway under the URL by which its clients, and its authorization server, know it."""

    url: AnyHttpUrl
    issuer: AnyHttpUrl

    @classmethod
    def of(cls, auth: Auth, url: str) -> "Resource":
        """Return the resource of a gateway: its audience where that is a URL, and `url` else."""
        is_url = auth.audience.startswith(("https://", "http://"))
        return cls(AnyHttpUrl(auth.audience if is_url else url), AnyHttpUrl(auth.issuer))

    @property
    def host(self) -> str:
        """The name in the URL."""
        return self.url.host or ""

    @property
    def metadata_url(self) -> str:
        """Where the metadata is."""
        return str(build_resource_metadata_url(self.url))

    def routes(self) -> list[Route]:
        """Return where the metadata is served."""
        return create_protected_resource_routes(self.url, [self.issuer])
