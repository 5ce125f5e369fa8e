"""Text as it may be shown: with every secret masked, and with every control character made visible.

:class:`~zardine.errors.ZardineError` applies this to its own text. Everything else that prints a URL, a name that is
stored, or the message of another library calls it by itself.
"""

from __future__ import annotations

import re
from typing import Any, Final


def shown(text: str) -> str:
    """Return ``text`` as it may be printed: secrets masked, and control characters other than line breaks escaped."""
    return printable_lines(without_secrets(text))


MASK: Final = "***"
"""What stands in place of a secret."""

_ACCOUNTS: Final = (
    *("abfs", "abfss", "adl", "az", "azure", "wasb", "wasbs"),
    *("ftp", "ftps", "hdfs", "sftp", "smb", "ssh", "webhdfs"),
)
"""Schemes of URLs in which a name before ``@``, without a password, is an account or a container, and no token."""

_USER: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{0,30})://(?:"
    r"([^/?#\s:@\['\"]*)@"  # a name alone
    r"|([^/?#\s:@\[]*):(?!:|\d*(?:[/?#\s'\"]|$))(?:([^/?#\s'\"]*|\S*|[^\n@]*)@))"  # the last two: not encoded
)
_URL: Final = re.compile(r"://\S*")
_VALUE: Final = r"(?:(?!::)(?:[^&#;\s'\"<>]|['\"](?=[\w%])))*"
_PAIR: Final = re.compile(rf"((?:[?&#;]|%3[Ff]|%26)[^=&#;?\s'\"/]*=){_VALUE}")
_LONE: Final = re.compile(r"\?[^=&#;\s'\"<>]+(?=[&#;\s'\"<>]|$)")
_NAMED: Final = re.compile(
    r"((?:[?&;](?:sig|signature|token|password|(?:x-amz|x-goog)-[a-z-]+"
    r"|[a-z_-]{0,20}(?:access|auth|session|api|secret)[a-z_-]{0,20})"
    rf"|\b(?:AccountKey|SharedAccessSignature|SharedAccessKey))=){_VALUE}"
    r"|(\bauthorization\b\W{1,6}(?:(?:basic|bearer|token)\s+)?)[^\s'\",;]+",
    re.IGNORECASE,
)
_MASKED: Final = re.compile(r"[/:]\*\*\*@|[?=]\*\*\*")


def without_secrets(text: str) -> str:
    """Return ``text`` with ``***`` in place of every secret in the URLs, connection strings and headers in it.

    In a URL these are the password (``user:***@host``), a token in place of the user (``github://***@``), and all
    values of the query, whatever they are called. ``sftp://user@host`` and ``abfs://container@account`` stay.
    """
    if "://" in text:
        text = _USER.sub(_masked_user, text)
        text = _URL.sub(lambda url: _LONE.sub(f"?{MASK}", _PAIR.sub(rf"\g<1>{MASK}", url[0])), text)
    if "=" in text or ":" in text:
        text = _NAMED.sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
    return text


def _masked_user(found: re.Match[str]) -> str:
    scheme, alone, user = found[1], found[2], found[3]
    if alone is not None:
        is_name = not alone or (scheme.lower() in _ACCOUNTS and "%3a" not in alone.lower())
        return found[0] if is_name else f"{scheme}://{MASK}@"
    if found[4] in ("", "x-oauth-basic"):  # then the name is the token
        return f"{scheme}://{MASK}@"
    return f"{scheme}://{user}:{MASK}@"


def has_masks(url: str) -> bool:
    """Return whether a URL lacks secrets that :func:`without_secrets` has masked."""
    return "://" in url and _MASKED.search(url) is not None


def mask_error(error: BaseException) -> None:
    """Mask the secrets in the texts of another library's error, and of its causes and contexts, in place.

    Errors that make their text of other attributes get a class of the same name that has the masked text.
    """
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        waiting += (each.__cause__, each.__context__, *getattr(each, "exceptions", ()))
        if _is_clean(each):
            continue
        texts = without_secrets(str(each)), without_secrets(repr(each))
        each.args = tuple(_masked_value(value) for value in each.args)
        for name in ("filename", "filename2", "strerror"):
            if isinstance(getattr(each, name, None), str):
                setattr(each, name, without_secrets(getattr(each, name)))
        if _is_clean(each):
            continue
        try:
            each.__class__ = _masked_class(type(each))
        except TypeError:  # the class is of C, and its text is of its arguments alone
            each.args = texts[:1]
        vars(each).update({name: _masked_value(value) for name, value in vars(each).items()}, **{_TEXTS: texts})


_TEXTS: Final = "_shown_texts"
"""The attribute of a masked error that holds what ``str`` and ``repr`` give."""


def _is_clean(error: BaseException) -> bool:
    texts = (str(error), repr(error), repr(vars(error)))
    return all(without_secrets(text) == text for text in texts)


def _masked_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else repr(value)
    masked = without_secrets(text)
    return value if masked == text else masked


_MASKED_CLASSES: Final[dict[type[BaseException], type[BaseException]]] = {}
"""The subclass of each class of errors that was masked, made once."""


def _masked_class(kind: type[BaseException]) -> type[BaseException]:
    """Return a subclass of the same name whose texts are kept in an attribute."""
    if kind in _MASKED_CLASSES:
        return _MASKED_CLASSES[kind]
    members = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__slots__": (),
        "__str__": lambda self: vars(self)[_TEXTS][0],
        "__repr__": lambda self: vars(self)[_TEXTS][1],
    }
    return _MASKED_CLASSES.setdefault(kind, type(kind.__name__, (kind,), members))


def printable(text: str) -> str:
    """Return ``text`` with every character that does not print (line breaks, terminal codes) escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def printable_lines(text: str) -> str:
    """Return ``text`` with its lines, and with all other characters that do not print escaped."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def one_line(thing: object, most: int = 120) -> str:
    """Return the text of another library's object in one line of at most ``most`` characters, without secrets."""
    text = printable(without_secrets(" ".join(str(thing).split())))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 fault``, ``2 faults``, ``1,000 vertices``; ``many`` is the plural where that is not ``one`` with s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


__all__ = [
    "MASK",
    "counted",
    "has_masks",
    "mask_error",
    "one_line",
    "printable",
    "printable_lines",
    "shown",
    "without_secrets",
]
