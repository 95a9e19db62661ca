"""A repair hook that asks a model again, through a callable of your own: any SDK, any model.

`Reask(ask)` builds the messages, reads the answer whatever its form, and counts what is asked. What comes back is parsed
strictly and validated like everything that a hook answers.
"""

from toolrun_reask._hook import Reask
from toolrun_reask._messages import WIRES, build_messages, force_tool

__all__ = ["WIRES", "Reask", "build_messages", "force_tool"]
