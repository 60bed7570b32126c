"""Texts that Windows wrote: cp1252, told from UTF-8 by the first letter that is not ASCII."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

_PIECE = 1 << 16
_HIGH = re.compile(rb"[\x80-\xff]")
_UTF8_INSIDE = re.compile(rb"[\xc2\xc3][\x80-\xbf]")
"""A letter of UTF-8 as cp1252 would show it: the text holds both."""
_IMPLAUSIBLE = re.compile(
    "(?=[^\0-\x7f]{0,3}[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff])"
    "[\u00a1-\u00aa\u00ac-\u00ba\u00bc-\u00ff]{4}"
    "|\u201a[\u00a1-\u00ff]"
    "|[a-z\u00df-\u00ff][\u0160\u0178\u017d\u0192\u02c6\u02dc\u2020\u2021\u2030\u2039\u203a\u201a\u201e"
    "\u00a1-\u00a6\u00a8\u00a9\u00ac\u00ae\u00af\u00b1-\u00b3\u00b6\u00b8\u00b9\u00bc-\u00bf]"
    "[a-z\u00df-\u00ff]"
)
"""Four letters and signs beyond ASCII in a row (Cyrillic, Greek, Chinese), a low quote before one
(Japanese), a sign in the midst of small letters (Polish, DOS, old Macs): another encoding."""
_CARRIED = 3
"""Letters of the piece before that such a pattern may begin with."""


class Utf8OrWestern(io.RawIOBase):
    """The bytes of a text as UTF-8, whichever of UTF-8 and cp1252 it is written in.

    Both say the same up to the first byte that is not ASCII; if a letter of UTF-8 begins there the
    text is UTF-8 to its end, else cp1252. No later byte changes it, nor how the text is cut into
    pieces, so that a pipe is read as a file is. What is hardly cp1252 raises UnicodeError.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name
        self._ready = memoryview(b"")
        self._western: bool | None = None
        self._before, self._last = "", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._stream.read(_PIECE)
            if not piece:
                return 0
            self._ready = memoryview(self._as_utf8(piece))
        given = self._ready[: len(buffer)]
        self._ready = self._ready[len(given) :]
        buffer[: len(given)] = given
        return len(given)

    def _as_utf8(self, piece: bytes) -> bytes:
        if self._western is None:
            found = _HIGH.search(piece)
            if found is None:
                self._before = (self._before + piece[-_CARRIED:].decode())[-_CARRIED:]
                return piece
            while len(piece) < found.start() + 4 and (more := self._stream.read(4)):
                piece += more
            self._western = not _begins_utf8(piece[found.start() : found.start() + 4])
            if self._western:
                piece = self._from_western(piece)
                warnings.warn(
                    f"{self._name} is not UTF-8; it is read as cp1252, as Windows writes Western "
                    "European texts (--encoding names another one).",
                    UserWarning,
                    stacklevel=2,
                )
            return piece
        return self._from_western(piece) if self._western else piece

    def _from_western(self, piece: bytes) -> bytes:
        text = piece.decode("cp1252")
        if _UTF8_INSIDE.search(self._last + piece) or _IMPLAUSIBLE.search(self._before + text):
            raise UnicodeError("and hardly cp1252")
        self._before, self._last = (self._before + text)[-_CARRIED:], piece[-1:]
        return text.encode()


def _begins_utf8(letters: bytes) -> bool:
    """Whether a letter of UTF-8 stands at the start.

    >>> _begins_utf8("\u00e9t\u00e9".encode()), _begins_utf8("\u00e9t\u00e9".encode("cp1252"))
    (True, False)
    """
    for length in (2, 3, 4):
        try:
            letters[:length].decode()
        except UnicodeDecodeError:
            continue
        return True
    return False
