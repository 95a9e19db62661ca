"""From whatever a provider or its SDK gives to finished calls. Nothing here waits, sources aside."""

from toolrun._stream.finalizer import EndOfStream, StreamFinalizer
from toolrun._stream.oneshot import afinalize, finalize
from toolrun._stream.sources import SourceKind, kind_of

__all__ = ["EndOfStream", "SourceKind", "StreamFinalizer", "afinalize", "finalize", "kind_of"]
