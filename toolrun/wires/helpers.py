"""What a wire of your own needs beside the seam: reading what came, and writing what goes back.

The built-in wires read and write with these. `fields`, `items`, `plain`, `plain_object`, `as_index`, `as_name`, `as_text` and
`error_message` take whatever stands where something should, and raise nothing. `history_name`, `history_arguments` and
`history_text` write a call down so that the provider takes it, and the model recognises what it wrote.
"""

from toolrun.wires._history import history_arguments, history_name, history_text
from toolrun.wires._reading import as_index, as_name, as_text, error_message, fields, items, plain, plain_object

__all__ = [
    "as_index",
    "as_name",
    "as_text",
    "error_message",
    "fields",
    "history_arguments",
    "history_name",
    "history_text",
    "items",
    "plain",
    "plain_object",
]
