"""What tests of agents, journals, executors and wires need. No part of it is imported by `import toolrun`.

* Scripts: what a model says, written once and told on any wire, as events, bytes, or by a server that SDKs talk to.
* Damage: valid arguments broken in the ways in which models break them, and what has to come of each.
* Assertions: what became of calls, what ran, and whether it can all be sent back.
* Contract suites for wires, journals and executors: subclass one in your tests, give it what you made, and name the class
  `Test…`. Those for journals and executors need pytest and anyio's plugin, and run on the event loops that your
  `anyio_backend` fixture says.

pytest finds the fixtures of this kit by itself once toolrun is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from toolrun._testing.asserting import assert_answered, assert_nothing_ran, assert_outcome, assert_ran_once
from toolrun._testing.damage.kinds import DAMAGE_KINDS, DamagedArguments, DamageKind, assert_handled, damaged
from toolrun._testing.ledger import Ledger
from toolrun._testing.model import FakeModel
from toolrun._testing.provider import FakeProvider
from toolrun._testing.runs import RecordedRun, record_runs
from toolrun._testing.samples import sample_tools
from toolrun._testing.scripts import ScriptedCall, ScriptedResponse
from toolrun._testing.splitting import chunked
from toolrun._testing.wires import WireSuite

if TYPE_CHECKING:
    from toolrun._testing.executors import DurableExecutorSuite, ExecutorSuite
    from toolrun._testing.journals import JournalSuite

__all__ = [
    "DAMAGE_KINDS",
    "DamageKind",
    "DamagedArguments",
    "DurableExecutorSuite",
    "ExecutorSuite",
    "FakeModel",
    "FakeProvider",
    "JournalSuite",
    "Ledger",
    "RecordedRun",
    "ScriptedCall",
    "ScriptedResponse",
    "WireSuite",
    "assert_answered",
    "assert_handled",
    "assert_nothing_ran",
    "assert_outcome",
    "assert_ran_once",
    "chunked",
    "damaged",
    "record_runs",
    "sample_tools",
]

_SUITES: Final = {
    "DurableExecutorSuite": "toolrun._testing.executors",
    "ExecutorSuite": "toolrun._testing.executors",
    "JournalSuite": "toolrun._testing.journals",
}
"""Where the names are that need pytest: it is imported with the first of them."""


def __getattr__(name: str) -> object:
    if name not in _SUITES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_SUITES[name]), name)
