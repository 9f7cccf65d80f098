"""Names of threads that live for one wait: brief.py MAJOR [FLAG...].

Every event of BriefThreads must carry the full Java names of its waiter and of the lock's owner, though both
are gone by the time that anybody looks; a virtual thread without a name must be told by its id.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jdks  # noqa: E402
from kindling import BUILD, classes, java_home, wait_for  # noqa: E402
from locks import EVENT, LIBRARY, READER  # noqa: E402
from walker import check, failures  # noqa: E402

LONG = "-of-a-thread-whose-name-no-kernel-would-keep-\u00e9\u4e2d-"
VIRTUAL = 1 << 31


def session(home, directory, kind, pairs, millis, flags):
    """(the program's words, the reader's)"""
    out = os.path.join(directory, "said-" + kind)
    with open(out, "w") as f:
        jvm = subprocess.Popen([*jdks.command(home, os.path.dirname(LIBRARY)), "-Xmx200m", *flags, "-Dfile.encoding=UTF-8",
                                "-cp", classes(), "BriefThreads", kind, str(pairs), str(millis)],
                               stdin=subprocess.PIPE, stdout=f, stderr=subprocess.STDOUT, cwd=directory)
    try:
        wait_for("READY", lambda: "READY" in open(out).read(), 60)
        path = os.path.join(directory, "events-" + kind)
        with open(path, "w") as f:
            reader = subprocess.Popen([READER, "-v", "-e", "lock", "-L", "-M", "always", "-l", LIBRARY, "-d", "86400", str(jvm.pid)],
                                      stdout=f, stderr=subprocess.STDOUT)
        wait_for("lock events", lambda: " events 2 " in open(path, errors="replace").read())
        jvm.stdin.write(b"\n")
        jvm.stdin.flush()
        wait_for("END", lambda: "\nEND\n" in open(out).read(), 120)
        time.sleep(0.3)
        reader.terminate()
        reader.wait(timeout=60)
        check(reader.returncode == 0, "%s: books exact" % kind)
        return open(out).read(), open(path, errors="replace").read()
    finally:
        jvm.kill()
        jvm.wait()


def events_of(text):
    """(waiter's tid and name, owner's) of each wait to enter or for a lock, as of the moment it was told."""
    names = {}
    for line in text.splitlines():
        m = re.match(r"THREAD (\d+) flags (\d+) java \d+ (.*)", line)
        if m and not int(m.group(2)) & 1:
            names[m.group(1)] = m.group(3)
        m = EVENT.match(line)
        if m and not int(m.group(5)) & 3 and (m.group(4) == "enter" or "ReentrantLock" in m.group(6)):
            yield int(m.group(3)), names.get(m.group(3), ""), int(m.group(8)), names.get(m.group(8), "")


def play(home, directory, kind, pairs, millis, flags):
    said, text = session(home, directory, kind, pairs, millis, flags)
    ids = {m.group(1): (int(m.group(2)), int(m.group(3))) for m in re.finditer(r"^PAIR (\d+) (\d+) (\d+)$", said, re.M)}
    waiters = owners = n = known = 0
    wrong = []
    for tid, waiter, owner_tid, owner in events_of(text):
        if kind == "unnamed":
            if not tid & VIRTUAL:
                continue
            pair = {(w, o) for w, o in ids.values()}
            right = [(tid - VIRTUAL) in {w for w, _ in pair}, (tid - VIRTUAL, owner_tid - VIRTUAL) in pair]
        else:
            # of the names that are known the other one follows
            number = (waiter + "/" + owner).rpartition("-")[2] if owner else waiter.rpartition("-")[2]
            if "main" in (waiter, owner) or "joins" in (waiter, owner):
                continue  # the program's own
            right = [waiter == "waiter" + LONG + number, owner == "owner" + LONG + number]
        n += 1
        known += owner_tid != 0
        waiters += right[0]
        owners += right[1]
        if not all(right):
            wrong.append((tid, waiter, owner_tid, owner))
    label = "%s for %d ms %s" % (kind, millis, " ".join(flags))
    # on a busy machine a thread may get its CPU when what it was to wait for is over
    check(n >= 0.2 * pairs, "%s: %d events of %d pairs" % (label, n, pairs))
    check(waiters >= 0.99 * n, "%s: %d of %d waiters are named %s" % (label, waiters, n, wrong[:3]))
    # a virtual owner that is asleep when nobody has contended before may be nobody's (docs/locks.md)
    n = n if kind == "platform" else known
    check(owners >= 0.99 * n, "%s: %d of %d owners are named %s" % (label, owners, n, wrong[:3]))


def main():
    home, flags = java_home(sys.argv[1]), sys.argv[2:]
    directory = tempfile.mkdtemp()
    try:
        play(home, directory, "platform", 400, 30, flags)
        play(home, directory, "platform", 400, 4, flags)
        if int(sys.argv[1].split("-")[0]) >= 21:
            play(home, directory, "virtual", 200, 30, flags)
            play(home, directory, "unnamed", 200, 30, flags)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
