"""Messages of the logger ``zardine`` are shown from a level on, in a form of one's own."""

import subprocess
import sys

PROGRAM = """
import logging, zardine
zardine.set_log_level("INFO")
zardine.set_format("<%(message)s>")
zardine.set_log_level("WARNING")
logging.getLogger("zardine.stores").info("no")
logging.getLogger("zardine.stores").warning("yes")
try:
    zardine.set_log_level("LOUD")
except ValueError as error:
    print(error)
"""


def test_level_and_form() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ran.stderr == "<yes>\n"
    assert "LOUD" in ran.stdout
