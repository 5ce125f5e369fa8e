"""Seconds to import an implementation in this fresh process: ``python importing.py MODULE``; without, NumPy alone."""

import re
import sys
import time
from pathlib import Path

statements = "import numpy"
if len(sys.argv) > 1:
    source = (Path(__file__).parent / "implementations" / f"{sys.argv[1]}.py").read_text()
    statements = re.search(r"^    imports = (['\"])(.*)\1$", source, re.MULTILINE)[2]
del sys.path[0]  # this folder: its modules are called like the packages
code = compile(statements, "<imports>", "exec")
start = time.perf_counter()
exec(code)
took = time.perf_counter() - start
print(f'{{"seconds": {took}, "count": 1}}')
