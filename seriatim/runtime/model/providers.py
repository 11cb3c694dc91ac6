"""Which model drives an agent, and what has to be there for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.settings import ModelSettings

from interceptors import Redactor, printable
from seriatim.topology.models import Agent, ModelChoice

LONGEST_EXPLANATION: Final = 500
"""Characters of a provider's error that are repeated to the user."""


class ModelChoiceError(Exception):
    """No usable model was named.

    Attributes:
        hint: what to do about it.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint: Final = hint


@final
@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    Attributes:
        name: its name in pydantic-ai.
        package: what to install to use it.
        variables: environment variables that it reads; the first is the one to set.
    """

    name: str
    package: str
    variables: tuple[str, ...]


def _providers() -> Mapping[str, Provider]:
    anthropic, google, openai = (f"seriatim[{name}]" for name in ("anthropic", "google", "openai"))
    gemini = Provider("google", google, ("GOOGLE_API_KEY", "GEMINI_API_KEY"))
    known = {
        "anthropic": Provider("anthropic", anthropic, ("ANTHROPIC_API_KEY",)),
        "azure": Provider(
            "azure",
            openai,
            ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"),
        ),
        "bedrock": Provider("bedrock", "pydantic-ai-slim[bedrock]", ("AWS_DEFAULT_REGION",)),
        "cerebras": Provider("cerebras", openai, ("CEREBRAS_API_KEY",)),
        "cohere": Provider("cohere", "pydantic-ai-slim[cohere]", ("CO_API_KEY",)),
        "deepseek": Provider("deepseek", openai, ("DEEPSEEK_API_KEY",)),
        "fireworks": Provider("fireworks", openai, ("FIREWORKS_API_KEY",)),
        "gemini": gemini,
        "google": gemini,
        "groq": Provider("groq", "pydantic-ai-slim[groq]", ("GROQ_API_KEY",)),
        "mistral": Provider("mistral", "pydantic-ai-slim[mistral]", ("MISTRAL_API_KEY",)),
        "ollama": Provider("ollama", openai, ("OLLAMA_BASE_URL", "OLLAMA_API_KEY")),
        "openai": Provider("openai", openai, ("OPENAI_API_KEY",)),
        "openai-chat": Provider("openai-chat", openai, ("OPENAI_API_KEY",)),
        "openrouter": Provider("openrouter", openai, ("OPENROUTER_API_KEY",)),
        "together": Provider("together", openai, ("TOGETHER_API_KEY",)),
        "xai": Provider("xai", "pydantic-ai-slim[xai]", ("XAI_API_KEY",)),
    }
    return MappingProxyType(known)


PROVIDERS: Final = _providers()
"""The name of a provider, as SwarmKit's files and `--model` have it -> the provider."""


@final
@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model, ready to be asked.

    Attributes:
        provider: the name under which traces know the provider.
        settings: what the agent's `model:` block says beside the name.
        secrets: values that no error may repeat.
    """

    provider: str
    model: Model
    settings: ModelSettings
    secrets: frozenset[str]


def named_model(name: str, agent: Agent, environ: Mapping[str, str]) -> ChosenModel:
    """Return the model that `PROVIDER:MODEL` names, with the settings of the agent's own.

    Raises:
        ModelChoiceError: when the name is of another form, or the model cannot be used.
    """
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise ModelChoiceError(
            f"`{name}` names no model",
            "write PROVIDER:MODEL, for instance `anthropic:claude-sonnet-4-5`",
        )
    return _chosen(provider, model, agent, environ)


def own_model(agent: Agent, environ: Mapping[str, str]) -> ChosenModel:
    """Return the model that the agent's `model:` block names.

    Raises:
        ModelChoiceError: when it has none, or one that cannot be used.
    """
    for choice in agent.models:
        return _chosen(choice.provider, choice.name, agent, environ)
    hint = "name one with `--model PROVIDER:MODEL`, or in the agent's `model:` block"
    raise ModelChoiceError(f"agent `{agent.id}` has no model", hint)


def settings_of(agent: Agent) -> ModelSettings:
    """Return what the agent's `model:` block says beside the name."""
    settings = ModelSettings()
    for choice in agent.models:
        _settle(settings, choice)
    return settings


def explain(error: Exception, secrets: frozenset[str]) -> str:
    """Return, on one line and without `secrets`, why a model gave no answer."""
    text = str(error) or type(error).__name__
    if isinstance(error, ModelHTTPError):
        text = f"{error.model_name} answered {error.status_code}: {_said(error.body)}"
    shown = Redactor(secrets).text(text)
    if len(shown) > LONGEST_EXPLANATION:
        shown = f"{shown[:LONGEST_EXPLANATION]}…"
    return " ".join(printable(word) for word in shown.split())


def _chosen(
    provider_name: str, model_name: str, agent: Agent, environ: Mapping[str, str]
) -> ChosenModel:
    whose = f"the model `{provider_name}:{model_name}` of agent `{agent.id}`"
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        raise ModelChoiceError(
            f"{whose} is of an unknown provider",
            f"known are {', '.join(PROVIDERS)}; choose one with `--model PROVIDER:MODEL`",
        )
    secrets = frozenset(environ[name] for name in provider.variables if name in environ)
    try:
        model = infer_model(f"{provider.name}:{model_name}")
    except ImportError as error:
        raise ModelChoiceError(
            f"{whose} needs a package that is not installed",
            f"install it with `pip install '{provider.package}'`",
        ) from error
    except UserError as error:
        if not any(environ.get(name) for name in provider.variables):
            raise ModelChoiceError(
                f"{whose} needs the environment variable `{provider.variables[0]}`",
                f"set `{provider.variables[0]}`, or choose another model with `--model`",
            ) from error
        raise ModelChoiceError(
            f"{whose} cannot be used: {explain(error, secrets)}",
            "choose another with `--model PROVIDER:MODEL`",
        ) from error
    return ChosenModel(provider.name, model, settings_of(agent), secrets)


def _settle(settings: ModelSettings, choice: ModelChoice) -> None:
    if choice.temperature is not None:
        settings["temperature"] = choice.temperature
    if choice.max_tokens is not None:
        settings["max_tokens"] = choice.max_tokens


def _said(body: object) -> str:
    """Return what a provider's error says for people, wherever the provider puts it."""
    match body:
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            return message
        case None:
            return "no explanation"
        case _:
            return str(body)
