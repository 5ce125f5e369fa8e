"""What an object store's refusal means, and what to do about it.

obstore has a class for few of its errors, so the rest is told apart by the codes that services put into their answers.
"""

from __future__ import annotations

import random
import re
import time
from typing import Final

from zardine.errors import ConditionFailedError, InvalidKeyError, StoreError, UnsupportedError

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
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
_WHERE: Final = {
    "S3Store": "key and secret in storage_options, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in "
    "~/.aws; anon=True in storage_options reads public data",
    "GCSStore": "token in storage_options (the path of a service account file) or GOOGLE_APPLICATION_CREDENTIALS; "
    "anon=True in storage_options reads public data",
    "AzureStore": "account_name and account_key (or sas_token, or connection_string) in storage_options or "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; anon=True in storage_options reads public data",
}


def status_of(error: BaseException) -> int | None:
    """The HTTP status that the service answered with, where the error tells."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def is_missing(error: BaseException) -> bool:
    """Whether there is no value under the key, in a bucket that exists."""
    return isinstance(error, FileNotFoundError) and not any(each in str(error) for each in _NO_BUCKET)


def is_lost(error: BaseException) -> bool:
    """Whether a conditional write came too late."""
    if type(error).__name__ in ("PreconditionError", "AlreadyExistsError"):
        return not any(each in str(error) for each in _NO_BUCKET)
    return status_of(error) in (409, 412)


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


def is_cut_short(error: BaseException) -> bool:
    """Whether the connection went while a request or an answer was under way, which obstore does not always repeat."""
    text = str(error)
    return status_of(error) is None and any(each in text for each in _CUT_SHORT) and "kind: Connect" not in text


def pause(attempt: int, error: BaseException) -> bool:
    """Wait, longer each time, before what obstore gave up at once is tried again; false if trying again is vain."""
    if not is_cut_short(error.__cause__ or error):
        return False
    time.sleep(random.uniform(0.05, 0.1) * 2**attempt)
    return True


def translated(error: BaseException, what: str, store: str, kind: str) -> StoreError | UnsupportedError:
    """Our error for one of obstore's that was raised by ``what`` (such as ``read key 'a'``)."""
    text = str(error)
    name = type(error).__name__
    status = status_of(error)
    failed = f"cannot {what} of {store}"
    if is_lost(error):
        return ConditionFailedError(f"{failed}: it changed since it was read; nothing was written")
    if any(each in text for each in _NO_BUCKET):
        return StoreError(f"{failed}: there is no such bucket or container; create it first, or correct the URL")
    if kind in _WHERE and any(each in text for each in _NO_CREDENTIALS):
        return StoreError(f"{failed}: no credentials were found; give {_WHERE[kind]}")
    if name == "PermissionDeniedError" or status == 403:
        code = _CODE.search(text)
        reason = f"forbidden ({code[1]})" if code else "forbidden"
        return StoreError(
            f"{failed}: {reason}; these credentials lack the right, are wrong, or (without the right to list) the key "
            "is missing"
        )
    if name == "UnauthenticatedError" or status == 401:
        return StoreError(f"{failed}: not authenticated; give credentials: {_WHERE.get(kind, 'in storage_options')}")
    if status in (429, 503) or "SlowDown" in text or "ServerBusy" in text:
        return StoreError(
            f"{failed}: the service is throttling (status {status}) and did not stop after several tries; try again "
            "later, use fewer threads or processes, or raise max_retries in storage_options"
        )
    if status == 301 or "PermanentRedirect" in text or "AuthorizationHeaderMalformed" in text:
        return StoreError(f"{failed}: the bucket is in another region; give region in storage_options: {_line(text)}")
    if status is None and ("error sending request" in text or "dns error" in text or "onnection" in text):
        return StoreError(f"{failed}: the server cannot be reached, or hung up, in several tries: {_line(text)}")
    if "timed out" in text or "timeout" in text.lower().replace("retry_timeout", ""):
        return StoreError(
            f"{failed}: no answer in time, in several tries (timeout and max_retries are in storage_options)"
        )
    if "InvalidPath" in text or (isinstance(error, ValueError) and "path" in text.lower()):
        return InvalidKeyError(f"{failed}: the store cannot have a key of that name: {_line(text)}")
    return StoreError(f"{failed}: {_line(text)}")


def _line(text: str) -> str:
    """The first line of an error's text, without the details that follow it."""
    return text.partition("\n\nDebug source")[0].partition("\n")[0][:300]


__all__ = [
    "has_no_ranges",
    "is_cut_short",
    "is_lost",
    "is_missing",
    "is_out_of_range",
    "is_unsupported",
    "status_of",
    "translated",
]
