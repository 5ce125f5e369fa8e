"""Write ``bad_documents_old.json``: documents of Zarr v2, v1 and the sharding draft that must be refused, or must not.

``python tests/golden/make_bad_documents_old.py [FOLDER]`` needs the standard library alone (and what
``golden_files_old.py`` imports). Each case has

``about``   what it is
``open``    how a user comes across it: as an ``array``, a ``group`` or a ``consolidated`` group
``files``   key -> content, as ``document_bytes`` in ``golden_files_old.py`` makes bytes of it
``reason``  (bad) the member, and what is wrong with it: a good error says as much
``when``    (bad) ``read`` if opening may succeed, and only reading, or going to that member, must not
``meaning`` (accepted) how it is to be understood
``expect``  (accepted) what to check: ``attributes`` (numbers that are no JSON numbers as text), ``shape``, ``fill`` in
            the form of the manifest, ``elements`` as a list of their texts, ``members``, ``zarr_format``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import accepted_documents
import bad_documents_others
import bad_documents_v2
from golden_files_old import HERE

BAD = [
    *bad_documents_v2.members_of_v2(),
    *bad_documents_v2.types_of_v2(),
    *bad_documents_v2.codecs_of_v2(),
    *bad_documents_v2.fill_values_of_v2(),
    *bad_documents_v2.texts(),
    *bad_documents_others.groups(),
    *bad_documents_others.version_one(),
    *bad_documents_others.sharding(),
]
ACCEPTED = [
    *accepted_documents.oddities_of_v2(),
    *accepted_documents.oddities_of_v1(),
    *accepted_documents.oddities_of_the_draft(),
]


def main(folder: Path) -> None:
    parts = []
    for name, cases in {"bad": BAD, "accepted": ACCEPTED}.items():
        lines = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False) for case in cases)
        parts.append(f'"{name}": [\n{lines}\n]')
    (folder / "bad_documents_old.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{len(BAD)} bad documents, {len(ACCEPTED)} accepted ones")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
