import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim.runtime.servers.expansion import MissingVariableError, expand
from seriatim.topology.models import HttpTransport, StdioTransport
from tests.support.mcp_servers import definition

ENVIRON = {"TOKEN": "s3cret-token", "HOME": "/home/zoe", "EMPTY": "", "NESTED": "${TOKEN}"}


def test_every_field_of_a_process_is_expanded() -> None:
    transport = StdioTransport(("${HOME}/bin/x", "--a=${TOKEN}"), {"T": "${TOKEN}"}, "${HOME}/w")
    expanded = expand(definition("s", transport), ENVIRON)
    assert expanded.transport == StdioTransport(
        ("/home/zoe/bin/x", "--a=s3cret-token"), {"T": "s3cret-token"}, "/home/zoe/w"
    )
    assert expanded.secrets == {"s3cret-token", "/home/zoe"}


def test_every_field_of_an_endpoint_is_expanded() -> None:
    transport = HttpTransport("https://x/${TOKEN}", {"Authorization": "Bearer ${TOKEN}"})
    expanded = expand(definition("s", transport), ENVIRON)
    assert expanded.transport == HttpTransport(
        "https://x/s3cret-token", {"Authorization": "Bearer s3cret-token"}
    )
    assert expanded.secrets == {"s3cret-token"}


@pytest.mark.parametrize(
    ("transport", "field"),
    [
        (StdioTransport(("x", "${GONE}"), {}, "."), "command.1"),
        (StdioTransport(("x",), {"A": "${GONE}"}, "."), "env.A"),
        (StdioTransport(("x",), {}, "${GONE}"), "cwd"),
        (HttpTransport("http://${GONE}", {}), "endpoint"),
        (HttpTransport("http://x", {"X-Key": "${GONE}"}), "headers.X-Key"),
    ],
)
def test_a_missing_variable_is_named_with_its_server_and_field(
    transport: StdioTransport | HttpTransport, field: str
) -> None:
    with pytest.raises(MissingVariableError) as caught:
        expand(definition("mill", transport), ENVIRON)
    assert str(caught.value) == (
        f"server `mill`: `{field}` needs the environment variable `GONE`, which is not set"
    )


def test_an_empty_variable_is_not_missing() -> None:
    expanded = expand(definition("s", StdioTransport(("x", "${EMPTY}"), {}, ".")), ENVIRON)
    assert expanded.transport == StdioTransport(("x", ""), {}, ".")


def test_a_value_is_not_expanded_again() -> None:
    expanded = expand(definition("s", StdioTransport(("x", "${NESTED}"), {}, ".")), ENVIRON)
    assert expanded.transport == StdioTransport(("x", "${TOKEN}"), {}, ".")


@given(st.text(alphabet="a$ {}:-1", max_size=20))
def test_what_is_no_variable_stays_as_it_is(text: str) -> None:
    environ = {"a" * length: "a" * length for length in range(1, 21)} | {"a1": "a1"}
    if "${a" not in text:
        expanded = expand(definition("s", StdioTransport((text,), {}, ".")), environ)
        assert expanded.transport == StdioTransport((text,), {}, ".")
