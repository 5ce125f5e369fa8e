"""What an object store's refusal means, and what to do about it.

obstore has a class for few of its errors, so the rest is told apart by the codes that services put into their answers.
"""

from __future__ import annotations

import contextlib
import errno
import html
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from zardine.errors import ConditionFailedError, InvalidKeyError, StoreError, UnsupportedError

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>\s*([^<]+?)\s*</Code>")
_MESSAGE: Final = re.compile(r"<Message>\s*([^<]+?)\s*</Message>", re.DOTALL)
_REGION: Final = re.compile(r"<Region>\s*([\w-]+)\s*</Region>|expecting '([\w-]+)'")
_RETRIES: Final = re.compile(r", after (\d+) retries,")
_HTTP_KIND: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
"""What obstore's HTTP client says of a failure without an answer: ``Connect``, ``Interrupted``, ``Timeout``, ..."""
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")
_NO_CREDENTIALS: Final = (
    "latest/api/token",
    "latest/meta-data/iam",
    "metadata.google.internal",
    "computeMetadata",
    "/metadata/identity",
    "/msi/token",
    "UnauthenticatedError",
    "no credential",
    "MissingCredential",
    "Account must be specified",
    "MissingAccount",
)
_CUT_SHORT: Final = (
    "error sending request",
    "response body",
    "timed out",
    "TimedOut",
    "IncompleteBody",
    "kind: Interrupted",
)
_CONFLICTS: Final = ("ConditionalRequestConflict", "OperationAborted")
"""Codes of S3 for a request that met another one and may simply be made again."""

_LOST: Final = (*_CONFLICTS, "PreconditionFailed", "ConditionNotMet", "TargetConditionNotMet", "BlobAlreadyExists")
_UNSENT: Final = ("NotSupportedError", "NotImplementedError", "InvalidPathError")
"""Errors of obstore from before anything is sent."""

_BUSY_CODES: Final = ("SlowDown", "InternalError", "RequestTimeout", "ServerBusy", "OperationTimedOut")
"""Codes of a service that cannot answer now, also for single keys of a request, or with statuses that do not say so."""

_WHERE: Final = {
    "S3Store": "key and secret in storage_options, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in "
    "~/.aws; anon=True in storage_options reads public data",
    "GCSStore": "token in storage_options (the path of a service account file) or GOOGLE_APPLICATION_CREDENTIALS; "
    "anon=True in storage_options reads public data",
    "AzureStore": "account_name and account_key (or sas_token, or connection_string) in storage_options or "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; anon=True in storage_options reads public data",
    "HTTPStore": "user:password@host in the URL, or storage_options={'headers': {'Authorization': ...}}",
}


class GivenUp(Exception):  # noqa: N818 - never seen by users
    """The last of so many ``tries``, in so many ``seconds``, failed with the error that is its cause.

    ``is_uncertain``: the service may have carried out the request in one of them.
    """

    def __init__(self, tries: int, seconds: float, *, is_uncertain: bool) -> None:
        super().__init__(tries)
        self.tries, self.seconds, self.is_uncertain = tries, seconds, is_uncertain


def status_of(error: BaseException) -> int | None:
    """The HTTP status that the service answered with, where the error tells."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def code_of(error: BaseException) -> str | None:
    """The service's own name for what went wrong, where it gave one."""
    found = _CODE.search(str(error))
    return found[1] if found else None


def repetitions(error: BaseException) -> int:
    """How many requests an error of obstore has cost."""
    if isinstance(error, (TypeError, ValueError)) or type(error).__name__ in _UNSENT:
        return 1 if has_no_ranges(error) else 0
    found = _RETRIES.search(str(error))
    return 1 + (int(found[1]) if found else 0)


def is_missing(error: BaseException) -> bool:
    """Whether there is no value under the key, in a bucket that exists."""
    return isinstance(error, FileNotFoundError) and not any(each in str(error) for each in _NO_BUCKET)


def is_lost(error: BaseException, kind: str) -> bool:
    """Whether a conditional write came too late.

    Services answer with the same statuses for other reasons, such as a lease on a blob of Azure: the code tells.
    """
    code, status = code_of(error), status_of(error)
    refused = type(error).__name__ in ("PreconditionError", "AlreadyExistsError") or status in (409, 412)
    if any(each in str(error) for each in _NO_BUCKET):
        return False
    return refused and (code is None or code in _LOST or (status in (404, 412) and kind != "AzureStore"))


def is_conflict(error: BaseException) -> bool:
    """Whether the request met another one at the same key, and may be made again as it is."""
    return code_of(error) in _CONFLICTS


def is_unsupported(error: BaseException) -> bool:
    """Whether the store, or the service behind it, does not know such a request."""
    return type(error).__name__ in ("NotSupportedError", "NotImplementedError") or status_of(error) == 501


def is_out_of_range(error: BaseException) -> bool:
    """Whether a byte range began beyond the end of the value."""
    text = str(error)
    return (
        status_of(error) == 416
        or "ParseContentRange" in text
        or "StartTooLarge" in text
        or "Invalid range" in text
        or "InvalidGetRange" in text
    )


def has_no_ranges(error: BaseException) -> bool:
    """Whether the server answered a request for a range with the whole value."""
    return "NotPartial" in str(error) or "Range request not supported" in str(error)


def has_no_length(error: BaseException) -> bool:
    """Whether the server answered without saying how long the answer is, which obstore does not take."""
    return "Content-Length Header missing" in str(error) or "MissingContentLength" in str(error)


def is_unsent(error: BaseException) -> bool:
    """Return whether no connection came about, so that the service has not seen the request."""
    found = _HTTP_KIND.search(str(error))
    return found is not None and found[1] == "Connect"


def is_uncertain(error: BaseException) -> bool:
    """Return whether the service may have carried out the request all the same, in this try or in one of obstore's."""
    sent, status = repetitions(error), status_of(error)
    return sent > 1 or (sent == 1 and not is_unsent(error) and (status is None or status >= 500))


def is_cut_short(error: BaseException) -> bool:
    """Whether the connection went while a request or an answer was under way, which obstore does not always repeat."""
    return status_of(error) is None and any(each in str(error) for each in _CUT_SHORT) and not is_unsent(error)


def is_busy(error: BaseException) -> bool:
    """Return whether the service answered that it cannot answer now."""
    status = status_of(error) or 0
    return status in (408, 429) or (status >= 500 and status != 501) or code_of(error) in _BUSY_CODES


def is_passing(error: BaseException) -> bool:
    """Whether the same request may well succeed if it is made again now."""
    passing = is_cut_short(error) or is_busy(error) or is_conflict(error)
    return passing or bool(getattr(error, "passing", False))


def is_refusal(error: BaseException) -> bool:
    """Whether the service, or the way to it, seems to have too much to do."""
    return is_cut_short(error) or is_busy(error) or "error sending request" in str(error)


def has_no_etag(error: BaseException) -> bool:
    """Return whether the service did what it was asked, and did not tell the ETag, which obstore does not take."""
    return "ETag Header missing" in str(error)


def translated(
    error: BaseException,
    what: str,
    store: str,
    kind: str,
    *,
    changes: bool = False,
    conditional: bool = False,
    region: Callable[[], str] = str,
) -> StoreError | UnsupportedError:
    """Our error for one of obstore's that was raised by ``what`` (such as ``read key 'a'``).

    ``changes``: a write, or an erasure; ``conditional``: a write that might come too late; ``region`` asks for the
    region of a bucket that is elsewhere.
    """
    times, uncertain = "", is_uncertain(error)
    if isinstance(error, GivenUp):
        if error.tries > 1:
            times = f" in {error.tries} tries within {error.seconds:.1f} s"
        uncertain = error.is_uncertain
        error = error.__cause__ or error
    elif repetitions(error) > 1:
        times = f" in {repetitions(error)} tries"
    text, name, status = str(error), type(error).__name__, status_of(error)
    failed = f"cannot {what} of {store}"
    if conditional and is_lost(error, kind):
        lost = ConditionFailedError(_lost_race(failed, error, times, uncertain=uncertain))
        lost.may_be_done = uncertain
        return lost
    maybe = "; the request may have been carried out" if changes and uncertain else ""
    if any(each in text for each in _NO_BUCKET):
        return StoreError(f"{failed}: there is no such bucket or container; create it first, or correct the URL")
    if kind in _WHERE and kind != "HTTPStore" and any(each in text for each in _NO_CREDENTIALS):
        return StoreError(f"{failed}: no credentials were found; give {_WHERE[kind]}")
    if kind != "S3Store" and "Received redirect without LOCATION" in text:
        return StoreError(f"{failed}: the server redirects, and does not say where to (no Location)")
    if kind == "S3Store" and _is_elsewhere(error):
        found = _REGION.search(text)
        return StoreError(f"{failed}: {_elsewhere((found[1] or found[2]) if found else region())}")
    if name == "PermissionDeniedError" or status == 403:
        code = code_of(error)
        reason = f"forbidden ({code})" if code else "forbidden"
        refusal = StoreError(
            f"{failed}: {reason}; these credentials lack the right, are wrong, or (without the right to list) the key "
            "is missing"
        )
        refusal.errno = errno.EACCES
        return refusal
    if name == "UnauthenticatedError" or status == 401:
        return StoreError(f"{failed}: not authenticated; give credentials: {_WHERE.get(kind, 'in storage_options')}")
    if status in (429, 503) or "SlowDown" in text or "ServerBusy" in text:
        return StoreError(
            f"{failed}: the service is throttling and did not stop{times} ({_answer(error)}){maybe}; try again later, "
            "use fewer threads or processes, or raise max_retries in storage_options"
        )
    if "timed out" in text or "TimedOut" in text:
        return StoreError(f"{failed}: no answer in time{times} (timeout and max_retries are in storage_options){maybe}")
    if status is None and ("error sending request" in text or "dns error" in text or "onnection" in text):
        return StoreError(f"{failed}: the server cannot be reached, or hung up{times}: {reason_of(error)}{maybe}")
    if is_cut_short(error):
        return StoreError(f"{failed}: the answer was cut short{times}: {reason_of(error)}{maybe}")
    if "InvalidPath" in text or (isinstance(error, ValueError) and "path" in text.lower()):
        return InvalidKeyError(f"{failed}: the store cannot have a key of that name: {reason_of(error)}")
    return StoreError(f"{failed}{times}: {reason_of(error)}{maybe}")


def _lost_race(failed: str, error: BaseException, times: str, *, uncertain: bool) -> str:
    """Return what to say of a conditional write that the service refused for what is stored."""
    if uncertain:
        return (
            f"{failed}{times}: an answer was lost, and another program has written the key since; the write may have "
            f"been carried out before that: look at what is stored ({_answer(error)})"
        )
    return f"{failed}{times}: it changed since it was read; nothing was written ({_answer(error)})"


def _answer(error: BaseException) -> str:
    """Return the service's answer: status, code and message, as far as it gave them."""
    status, code = status_of(error), code_of(error)
    return reason_of(error) if code else f"status {status}" if status else reason_of(error)


def _is_elsewhere(error: BaseException) -> bool:
    """Whether S3 said that the bucket is elsewhere."""
    text = str(error)
    return (
        status_of(error) == 301
        or "Received redirect without LOCATION" in text
        or "PermanentRedirect" in text
        or ("AuthorizationHeaderMalformed" in text and "region" in text)
    )


def _elsewhere(region: str) -> str:
    """What to say of a bucket that is in another ``region``, which may not be known."""
    if region:
        return f"the bucket is in the region {region!r}: give region={region!r} in storage_options, or AWS_REGION"
    return "the bucket is in another region: give region in storage_options, or AWS_REGION"


def reason_of(error: BaseException) -> str:
    """What the service says: the status, its code and its message; or else the first line of obstore's text."""
    text = str(error).partition("\n\nDebug source")[0]
    status, code, message = status_of(error), _CODE.search(text), _MESSAGE.search(text)
    if code is None:
        return text.partition("\n")[0][:300]
    said = " ".join(html.unescape(message[1]).split()) if message else ""
    return f"{code[1]}{f' (status {status})' if status else ''}{f': {said}' if said else ''}"[:400]


_HEADER: Final = "x-amz-bucket-region"
_PATIENCE: Final = 5.0
"""Seconds that an error text may wait for the name of a region."""


def region_of(config: Mapping[str, Any]) -> str:
    """The region of the bucket of an ``S3Store`` of this ``config``; empty if the service does not say."""
    import http.client  # here: slow to import, and rarely needed
    import urllib.error
    import urllib.request
    from urllib.parse import quote

    service = str(config.get("endpoint") or "https://s3.amazonaws.com").rstrip("/")
    request = urllib.request.Request(f"{service}/{quote(str(config.get('bucket', '')))}", method="HEAD")
    found: str | None = None
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                found = answer.headers.get(_HEADER)
        except urllib.error.HTTPError as refusal:
            with refusal:
                found = refusal.headers.get(_HEADER)
    return found or ""


__all__ = [
    "GivenUp",
    "code_of",
    "has_no_etag",
    "has_no_length",
    "has_no_ranges",
    "is_busy",
    "is_conflict",
    "is_cut_short",
    "is_lost",
    "is_missing",
    "is_out_of_range",
    "is_passing",
    "is_refusal",
    "is_uncertain",
    "is_unsent",
    "is_unsupported",
    "reason_of",
    "region_of",
    "repetitions",
    "status_of",
    "translated",
]
