"""Tool calls on Temporal: an executor for the agent, and the worker that runs its calls.

Each call is one activity, and its key the activity's id. Nothing changes by installing this: pass a `TemporalExecutor` to
a runner, and start `toolrun-temporal worker` where the tools are to run.
"""

from toolrun_temporal._executor import TemporalExecutor
from toolrun_temporal._worker import make_activity, make_worker

__all__ = ["TemporalExecutor", "make_activity", "make_worker"]
