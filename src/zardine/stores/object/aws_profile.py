"""Credentials in the files that the AWS command line writes (``~/.aws/credentials`` and ``~/.aws/config``)."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from typing import Any, Final

from zardine.errors import StoreError

_OPTIONS: Final[Mapping[str, str]] = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}


def profile_options(profile: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the wanted profile: ``profile``, or AWS_PROFILE, or ``default``; nothing where none is needed.

    None is needed where ``config`` or the environment has keys already, or says that requests are not signed.
    :class:`StoreError` for a profile that was asked for and is missing, or has no keys but a way to get some.
    """
    named = profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    own = config.keys() & {"access_key_id", "skip_signature", "web_identity_token_file"}
    if own or (profile is None and "AWS_ACCESS_KEY_ID" in os.environ):
        return {}
    found: dict[str, str] = {}
    for variable, file, start in (
        ("AWS_CONFIG_FILE", "~/.aws/config", "profile "),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", ""),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.path.expanduser(os.environ.get(variable, file)), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{os.environ.get(variable, file)} cannot be read: {error}") from None
        for section in {named or "default", f"{start}{named or 'default'}"}:
            if parser.has_section(section):
                found.update(parser.items(section))
    if named and not found:
        raise StoreError(f"there is no AWS profile {named!r} in ~/.aws/config or ~/.aws/credentials")
    if named and "aws_access_key_id" not in found:
        raise StoreError(
            f"the AWS profile {named!r} has no keys of its own (but perhaps a role or a sign-on): make temporary ones, "
            "for example by the command: aws configure export-credentials, and give them as key, secret and token"
        )
    return {own: found[name] for name, own in _OPTIONS.items() if name in found}


__all__ = ["profile_options"]
