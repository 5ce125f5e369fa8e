"""What the library says of arguments of Python, said of options of commands."""

from __future__ import annotations

import re
from typing import Final

_IN_THE_SHELL: Final = {
    "overwrite=True or mode='w'": "--overwrite",
    "overwrite=True": "--overwrite",
    "resume=True continues it": "the command without --no-resume continues it",
    "target_path='name'": "--target-path name",
    "repair(drop_lost=True)": "'zardine vectors repair --drop-lost'",
    "zardine.convert(..., metadata_only=True, remove_old=True)": "'zardine convert --metadata-only --remove-old'",
    "zardine.sources.open shows a file as a group": "'zardine info' and 'zardine view' show a file as a group",
    "zardine.convert": "'zardine convert'",
    "call zardine.reshard as before": "run 'zardine reshard' as before",
    "restart=True": "--restart",
    "cancel=True": "--cancel",
    "metadata_only=True": "--metadata-only",
    "shards=None": "--shards none",
    "zarr_format=2": "--zarr-format 2",
    "zarr_format=3": "--zarr-format 3",
    "format= names": "--format names",
    "with format= one of": "with --format one of",
    "workers= are of folders": "--workers is for folders",
    "make it again with records=": "make it again with --records",
    "anon=True in storage_options": "--storage-option anon=true",
    "in storage_options": "with --storage-option",
    ": see open_array": "",
    "plan.save makes one": "'zardine jobs plan' makes one",
    "and mode 'r+' writes: use mode='r'": "and this changes what is stored",
}
"""Arguments and functions of Python that errors and findings name, as options and commands."""
_NAMED: Final = re.compile("|".join(map(re.escape, _IN_THE_SHELL)))


def in_the_shell(text: str) -> str:
    """Return ``text`` with options and commands where it names arguments and functions."""
    return _NAMED.sub(lambda found: _IN_THE_SHELL[found[0]], text)
