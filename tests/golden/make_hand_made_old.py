"""Write by hand what no program writes any more: Zarr v1, the examples of the v2 text, the 2023 sharding draft.

``python tests/golden/make_hand_made_old.py [FOLDER]`` needs NumPy and numcodecs (for blosc alone) and follows the text
of the specifications. It writes ``data/hand-made-old/``, the expected elements and the entries of
``manifest_old.json``, all below FOLDER (that of this file if left out); the same on every run with the same releases
of zlib and blosc, which the manifest names as the version.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import hand_made_draft
import hand_made_v1
import hand_made_v2
import numcodecs.blosc
from golden_files_old import HERE, OldManifest

VERSION = f"zlib {zlib.ZLIB_RUNTIME_VERSION}, blosc {numcodecs.blosc.VERSION_STRING}"


def main(folder: Path) -> None:
    manifest = OldManifest("hand-made-old", "by hand", VERSION, folder)
    hand_made_v1.examples(manifest)
    hand_made_v1.features(manifest)
    hand_made_v2.examples(manifest)
    hand_made_v2.documents(manifest)
    hand_made_draft.features(manifest)
    hand_made_draft.layouts(manifest)
    manifest.save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
