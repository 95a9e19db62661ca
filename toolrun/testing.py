"""Contract suites for journals and executors, and a ledger to judge them by. The suites need pytest.

Subclass a suite in your tests, give it what you made, and name the class `Test…`. The tests are for anyio's pytest
plugin, and run on the event loops that your `anyio_backend` fixture says.
"""

from toolrun._testing.executors import DurableExecutorSuite, ExecutorSuite
from toolrun._testing.journals import JournalSuite
from toolrun._testing.ledger import Ledger
from toolrun._testing.samples import sample_tools

__all__ = ["DurableExecutorSuite", "ExecutorSuite", "JournalSuite", "Ledger", "sample_tools"]
