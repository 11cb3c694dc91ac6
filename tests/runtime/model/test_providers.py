"""Which model an agent gets, and what is said when a provider gives no answer.

The providers' own clients talk to a server in this process.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from interceptors import AgentId
from seriatim.runtime.model.model_loop import CutOff, NoAnswer
from seriatim.runtime.model.providers import (
    PROVIDERS,
    ChosenModel,
    ModelChoiceError,
    explain,
    named_model,
    own_model,
    settings_of,
)
from seriatim.topology.models import Agent, ModelChoice, ModelExecutor
from tests.support.model_runs import play_chosen, workspace_file

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-key-0123456789"
AGENTS = """
agents:
  root: {id: ann, role: root, skills: [list, get], requires: {get: [list]}}
"""


@pytest.fixture
def anyio_backend() -> str:
    """Providers' clients run on asyncio only, and so does the command."""
    return "asyncio"


def agent(*models: ModelChoice) -> Agent:
    return Agent(
        id=AgentId("ann"),
        role="root",
        description="",
        skills=(),
        requires={},
        scopes=frozenset(),
        models=models,
        prompt="",
        children=(),
        executor=ModelExecutor(),
    )


class Provider(ThreadingHTTPServer):
    """Answers requests to an OpenAI-compatible API with what a test gives it."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[Any] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(body))
        status, answer = self.server.answers.pop(0)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the base class has it
        pass


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server
        server.shutdown()
        thread.join()


def completion(message: Any, finish: str) -> tuple[int, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return 200, {**answer, "choices": [choice]}


def calls(*pairs: tuple[str, str]) -> tuple[int, Any]:
    made = [
        # One id for all, as some servers have it.
        {"id": "call", "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in pairs
    ]
    return completion({"content": None, "tool_calls": made}, "tool_calls")


def chosen() -> dict[AgentId, ChosenModel]:
    environ = {"OPENAI_API_KEY": KEY}
    return {AgentId("ann"): named_model("openai-chat:m", agent(), environ)}


async def test_a_real_client_goes_through_the_loop(tmp_path: Path, provider: Provider) -> None:
    provider.answers = [
        calls(("get", "{}"), ("list", "")),
        calls(("get", "[1"), ("get", '{"name": "card"}')),
        completion({"content": "one button"}, "stop"),
    ]
    played = await play_chosen(workspace_file(tmp_path, AGENTS), chosen(), max_calls=3)
    assert played.ending == CutOff("one button", 3)
    sent = provider.requests[-1]["messages"]
    results = [message for message in sent if message["role"] == "tool"]
    ids = [result["tool_call_id"] for result in results]
    made = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert ids == made
    assert len(set(ids)) == 4
    assert "Read the result of list, then retry." in results[0]["content"]
    assert results[1]["content"] == "console, card"
    assert "they are not valid JSON" in results[2]["content"]
    assert "this run has used its 3 calls" in results[3]["content"]
    assert "tool_choice" not in provider.requests[0] or (
        provider.requests[0]["tool_choice"] == "auto"
    )
    assert provider.requests[-1].get("tool_choice", "none") == "none"


async def test_a_bad_key_is_said_without_the_key(tmp_path: Path, provider: Provider) -> None:
    provider.answers = [(401, {"error": {"message": f"Incorrect API key: {KEY}\nTry again"}})]
    played = await play_chosen(workspace_file(tmp_path, AGENTS), chosen())
    assert played.ending == NoAnswer(
        "the model of agent `ann` gave no answer: m answered 401: Incorrect API key: [redacted] "
        "Try again"
    )


async def test_a_provider_that_cannot_be_reached_is_said(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    played = await play_chosen(workspace_file(tmp_path, AGENTS), chosen())
    assert isinstance(played.ending, NoAnswer)
    assert "Connection error" in played.ending.problem


def test_the_agents_own_model_is_mapped_to_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    environ = {"OPENROUTER_API_KEY": KEY}
    choice = ModelChoice("openrouter", "meta-llama/llama-3.3-70b-instruct", 0.1, 100)
    own = own_model(agent(choice), environ)
    assert (own.provider, own.model.model_name) == ("openrouter", choice.name)
    assert own.settings == {"temperature": 0.1, "max_tokens": 100}
    assert own.secrets == {KEY}


def test_a_model_named_by_the_user_keeps_the_settings_of_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    own = agent(ModelChoice("nobody", "x", 0.0, None))
    assert named_model("anthropic:claude-sonnet-4-5", own, {}).settings == {"temperature": 0.0}
    assert settings_of(agent()) == {}


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("", "`` names no model", "PROVIDER:MODEL"),
        ("anthropic", "`anthropic` names no model", "PROVIDER:MODEL"),
        (":x", "`:x` names no model", "PROVIDER:MODEL"),
        ("mock:x", "is of an unknown provider", ", ".join(PROVIDERS)),
        ("anthropic:x", "needs the environment variable `ANTHROPIC_API_KEY`", "set `ANTHROPIC"),
        ("google:x", "needs the environment variable `GOOGLE_API_KEY`", "set `GOOGLE_API_KEY`"),
        ("ollama:x", "needs the environment variable `OLLAMA_BASE_URL`", "set `OLLAMA_BASE_URL`"),
        ("mistral:x", "needs a package that is not installed", "pydantic-ai-slim[mistral]"),
    ],
)
def test_a_model_that_cannot_be_used_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str, message: str, hint: str
) -> None:
    for known in PROVIDERS.values():
        for variable in known.variables:
            monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelChoiceError) as raised:
        named_model(name, agent(), {})
    assert message in str(raised.value)
    assert hint in raised.value.hint


def test_a_missing_package_of_ours_is_named_as_our_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise ImportError("Please install `anthropic`")

    monkeypatch.setattr("seriatim.runtime.model.providers.infer_model", missing)
    with pytest.raises(ModelChoiceError) as raised:
        named_model("anthropic:x", agent(), {})
    assert raised.value.hint == "install it with `pip install 'seriatim[anthropic]'`"


def test_an_agent_without_a_model_says_how_to_name_one() -> None:
    with pytest.raises(ModelChoiceError) as raised:
        own_model(agent(), {})
    assert str(raised.value) == "agent `ann` has no model"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"message": "no"}, "no"),
        ({"detail": "no"}, "{'detail': 'no'}"),
        (None, "no explanation"),
        ("\x1b[31mno", "\\x1b[31mno"),
    ],
)
def test_what_a_provider_says_is_repeated_on_one_line(body: object, said: str) -> None:
    assert explain(ModelHTTPError(500, "m", body), frozenset()) == f"m answered 500: {said}"
    assert len(explain(ValueError("x y " * 1000), frozenset())) < 600
