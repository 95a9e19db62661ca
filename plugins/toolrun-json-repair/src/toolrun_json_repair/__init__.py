"""Proposals of the `json_repair` package as a repair hook: guarded, and graded lossy.

Nothing changes by installing this. Put `JsonRepair()` behind the built-in chain, and open the tools that may run such
arguments: `repair="lossy"`.
"""

from toolrun_json_repair._hook import JsonRepair

__all__ = ["JsonRepair"]
