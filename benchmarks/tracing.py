"""What tracing costs a governed call: off, sampled away, and exported to a live receiver.

    python -m benchmarks.tracing

What tracing adds is measured round a handler that answers at once, and set against one bare span of
the same SDK with the same attributes; the whole governed call stands beside it. All in one run and
interleaved, so that a busy machine disturbs all alike. Goal: at most 1.3 bare spans. Off, nothing
is composed (a test of the assembly holds that): one chain stands here twice, and shows the noise.
"""

import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import MappingProxyType

import anyio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

from interceptors import (
    UNKNOWN_TO_ALL,
    AgentId,
    AuditInterceptor,
    AuditRecord,
    CallId,
    Completed,
    DecisionId,
    Dialogue,
    Execution,
    Failed,
    Handler,
    Interceptor,
    JsonObject,
    Outcome,
    PrerequisiteInterceptor,
    Progress,
    Redactor,
    Rules,
    RunId,
    Scope,
    SkillId,
    ToolCall,
    ToolRef,
    ToolResult,
    Via,
    compose,
    new_id,
)
from telemetry import (
    ExecutionTimer,
    ExecutionTimes,
    KnownNames,
    MetricsInterceptor,
    Recoveries,
    RecoveryInterceptor,
    Telemetry,
    TracingInterceptor,
)
from telemetry.settings import read_settings
from telemetry.setup import start
from telemetry.tracing import span_attributes

CALLS = 400
ROUNDS = 31

Timed = Callable[[], Awaitable[None]]
ALLOWED = SkillId("list-build-conventions")
GUARDED = SkillId("get-build-convention")


class NoServers:
    """Answers at once, so that nothing but the gate is timed."""

    async def call(
        self,
        _tool: ToolRef,
        _arguments: JsonObject,
        _meta: JsonObject,
        _progress: Progress,
        _dialogue: Dialogue,
    ) -> Completed | Failed:
        return DONE


class NoSink:
    """Keeps no rows: an audit log of a million rows would time the allocator."""

    async def ready(self) -> None:
        pass

    async def write(self, _record: AuditRecord) -> None:
        pass

    def waiting(self) -> int:
        return 0


DONE = Completed(ToolResult())


def call_of(skill: SkillId) -> ToolCall:
    return ToolCall(
        CallId("call-1"),
        DecisionId(new_id()),
        Scope(RunId("run-1"), AgentId("bob")),
        skill,
        ToolRef("conventions", "tool"),
        MappingProxyType({"id": "naming"}),
        Via.MODEL,
        UNKNOWN_TO_ALL,
    )


def governed(outer: Sequence[Interceptor] = (), inner: Sequence[Interceptor] = ()) -> Handler:
    rules = Rules(MappingProxyType({GUARDED: (ALLOWED,)}))
    return compose(
        [
            *outer,
            AuditInterceptor(NoSink(), "bench", Redactor(), hidden={}),
            PrerequisiteInterceptor(rules),
            *inner,
        ],
        Execution(NoServers(), {}, Redactor()),
    )


async def answer(_call: ToolCall) -> Outcome:
    return DONE


def traced_answer(telemetry: Telemetry) -> Handler:
    tracing = TracingInterceptor(Redactor(), tracer_provider=telemetry.tracer_provider)
    return compose([tracing], answer)


def traced(telemetry: Telemetry) -> Handler:
    return governed([TracingInterceptor(Redactor(), tracer_provider=telemetry.tracer_provider)])


def metered(telemetry: Telemetry) -> Handler:
    names, times = KnownNames([ALLOWED, GUARDED]), ExecutionTimes()
    return governed(
        [
            TracingInterceptor(Redactor(), tracer_provider=telemetry.tracer_provider),
            RecoveryInterceptor(Recoveries(names, telemetry.meter_provider)),
            MetricsInterceptor(names, times, telemetry.meter_provider),
        ],
        [ExecutionTimer(times)],
    )


def calling(handler: Handler, skill: SkillId) -> Timed:
    call = call_of(skill)

    async def timed() -> None:
        for _ in range(CALLS):
            await handler(call)

    return timed


def bare(tracer: Tracer, skill: SkillId) -> Timed:
    """Time one span with the attributes that the interceptor gives it, and nothing more."""
    call = call_of(skill)

    async def timed() -> None:
        for _ in range(CALLS):
            span = tracer.start_span(
                f"execute_tool {skill}", attributes=span_attributes(call, skill)
            )
            span.set_attribute("policy_decision", "allow")
            span.end()

    return timed


async def measure(forms: dict[str, Timed], settle: Callable[[], object]) -> dict[str, float]:
    """Return the median over the rounds of each form's microseconds of CPU a call.

    CPU time of this thread: on a busy machine the clock tells of the neighbours.

    Args:
        settle: called after each form, untimed; exports the rest, which would slow the next one.
    """
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(ROUNDS):
        for name, form in forms.items():
            started = time.thread_time()
            await form()
            times[name].append((time.thread_time() - started) / CALLS * 1e6)
            settle()
    return {name: statistics.median(taken) for name, taken in times.items()}


class Accepting(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
        pass


def serve(ready: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Accepting)
    ready.send(server.server_port)
    server.serve_forever()


@contextmanager
def receiver() -> Iterator[str]:
    """Run a receiver in a process of its own: its work must not count as ours."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    there.close()
    yield f"http://127.0.0.1:{here.recv()}"
    process.terminate()
    process.join()


def telemetry_with(endpoint: str, sampler: str) -> Telemetry:
    os.environ["OTEL_TRACES_SAMPLER"] = sampler
    return start(read_settings({}, endpoint), lambda line: print(line, file=sys.stderr))


def main() -> None:
    os.environ["NO_PROXY"] = "127.0.0.1"
    # Room for all that the rounds produce between two exports, so that nothing is dropped for free.
    os.environ["OTEL_BSP_MAX_QUEUE_SIZE"] = "100000"
    with receiver() as endpoint:
        dropping = telemetry_with(endpoint, "always_off")
        exporting = telemetry_with(endpoint, "always_on")
        forms = {
            "answer": calling(answer, ALLOWED),
            "bare span, dropped": bare(dropping.tracer_provider.get_tracer("bare"), ALLOWED),
            "traced answer, dropped": calling(traced_answer(dropping), ALLOWED),
            "bare span, exported": bare(exporting.tracer_provider.get_tracer("bare"), ALLOWED),
            "traced answer, exported": calling(traced_answer(exporting), ALLOWED),
            "governed, no telemetry": calling(governed(), ALLOWED),
            "the same once more": calling(governed(), ALLOWED),
            "governed, dropped": calling(traced(dropping), ALLOWED),
            "governed, exported": calling(traced(exporting), ALLOWED),
            "governed, with metrics": calling(metered(exporting), ALLOWED),
            "refused, no telemetry": calling(governed(), GUARDED),
            "refused, exported": calling(traced(exporting), GUARDED),
        }
        assert isinstance(exporting.tracer_provider, TracerProvider)
        found = anyio.run(measure, forms, exporting.tracer_provider.force_flush)
        dropping.close()
        exporting.close()
    for name, microseconds in found.items():
        print(f"{name:24} {microseconds:8.1f} µs a call")
    for form in ("dropped", "exported"):
        ratio = (found[f"traced answer, {form}"] - found["answer"]) / found[f"bare span, {form}"]
        print(f"{form}: tracing adds {ratio:.2f} bare spans (goal: at most 1.3)")
    noise = found["the same once more"] - found["governed, no telemetry"]
    print(f"noise: {noise:+.2f} µs between two measurements of one chain")


if __name__ == "__main__":
    main()
