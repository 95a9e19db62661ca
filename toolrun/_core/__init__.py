"""The part that never waits: no event loop, no threads, no clock, no files, no randomness.

Everything here is fed and asked. The modules import downwards only; the order stands in
`pyproject.toml` under `importlinter` and is checked with every change.
"""
