"""The doubles in memory are what the protocols ask for."""

from interceptors import (
    AuditSink,
    Execution,
    Handler,
    Ledger,
    MemoryAuditSink,
    MemoryLedger,
    Policy,
    Redactor,
    Servers,
    TierPolicy,
)

ledger: Ledger = MemoryLedger()
sink: AuditSink = MemoryAuditSink()
policy: Policy = TierPolicy({}, frozenset())


def terminal(servers: Servers) -> Handler:
    return Execution(servers, {}, Redactor())
