"""Both ends of a call that runs in another process, for executors that send calls over a queue.

The executor sends what `write_job` gives, a `JobRunner` in the other process runs it with the tools that are there, and
`read_outcome` reads what comes back. How the texts travel, and how often, is the executor's.
"""

from toolrun._runtime.remote import JobRunner, is_same_call, write_job
from toolrun._runtime.remote import read_remote_outcome as read_outcome

__all__ = ["JobRunner", "is_same_call", "read_outcome", "write_job"]
