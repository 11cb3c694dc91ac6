"""The ledgers that must pass the one suite of `tests/interceptors/test_ledger.py`."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from interceptors import Ledger, MemoryLedger

OpenLedger = Callable[[], AbstractAsyncContextManager[Ledger]]


@asynccontextmanager
async def memory() -> AsyncIterator[Ledger]:
    yield MemoryLedger()


LEDGERS: Mapping[str, OpenLedger] = {"memory": memory}
"""Name -> opens a fresh, empty ledger; a store joins the suite by one entry here."""
