"""Programs that the tests of zip archives start, to write to an archive beside them and to be killed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

_HOLDER = """
import sys
from zardine.storage import ZipStore
store = ZipStore(sys.argv[1])
for line in sys.stdin:
    key, _, value = line.strip().partition("=")
    if key == "flush":
        store.flush()
    elif key == "close":
        store.close()
    else:
        store.set(key, value.encode())
    print("done", flush=True)
"""


class Program:
    """A process that has a store on an archive and does what it is told."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, *lines):
        """``key=value``, ``flush`` or ``close``, one after the other."""
        for line in lines:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def program(path):
    """A :class:`Program` that is killed at the end."""
    running = Program(path)
    try:
        yield running
    finally:
        running.kill()


_KILLED = """
import os, shutil, signal, sys
from zardine.storage import ZipStore
base, folder, part, work = sys.argv[1:]
left = 0

def dies(name):
    real = getattr(os, name)
    def call(*args, **options):
        global left
        left -= 1
        if not left:
            if name == "pwritev":
                data = b"".join(args[1])
                os.pwrite(args[0], data[: int(len(data) * float(part))], args[2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    setattr(os, name, call)

for name in ("open", "link", "pwritev", "fsync", "fchmod", "replace", "unlink"):
    dies(name)
step, status = 0, 9
while status:
    step += 1
    path = f"{folder}/{step}.zip"
    os.mkdir(f"{folder}/{step}")
    path = f"{folder}/{step}/a.zip"
    if base:
        shutil.copy(base, path)
    child = os.fork()
    if not child:
        left = step
        exec(work)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, 9), status
print(step)
"""


def killed_at_each_call(base, folder, part, work):
    """``work`` done on copies of ``base``, each by a process that is killed at the next system call that matters.

    A write that is the last call is done to the ``part`` that is said. Gives the archives; the last was not killed.
    """
    folder.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", _KILLED, str(base or ""), str(folder), str(part), work],
        capture_output=True,
        text=True,
        check=True,
    )
    return [folder / str(step + 1) / "a.zip" for step in range(int(run.stdout))]
