"""Names of threads that live for one wait: brief.py MAJOR [FLAG...]. Every event of BriefThreads must have the full
Java names of its waiter and of the lock's owner, although both have ended when anybody reads the event; a virtual
thread without a name must have its id."""
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
# kind of threads, pairs, ms that the lock is held, what the owner does meanwhile, pairs at a time, other idle virtual
# threads
PLATFORM_ROWS = (
    ("platform", 400, 30),
    ("platform", 400, 4),
)
VIRTUAL_ROWS = (
    ("virtual", 250, 3, "sleep", 1),
    ("virtual", 200, 30, "sleep", 6, 1000),
    ("mixed", 250, 10, "sleep", 2, 100),
    ("unnamed", 200, 30, "sleep", 6),
)
# from 24 on such an owner gives up its carrier
UNMOUNTED_ROWS = (
    ("old", 150, 30, "sleep", 4, 100),
    ("executor", 150, 10, "sleep", 2, 1000),
    ("shared", 150, 5, "sleep", 1, 1000),
    ("virtual", 200, 30, "read", 6),
    ("virtual", 150, 10, "run", 1),
)
ATTEMPTS = 3
LEARNS = 10  # pairs that are not checked: at a JVM's first virtual threads the agent learns where this JDK keeps their locks


def session(home, directory, flags, kind, *words):
    """Returns the program's output, the reader's, and whether the accounts were exact."""
    out = os.path.join(directory, "said-" + kind)
    with open(out, "w") as f:
        jvm = subprocess.Popen([*jdks.command(home, os.path.realpath(BUILD), os.path.dirname(LIBRARY)), "-Xmx200m", *flags, "-Dfile.encoding=UTF-8",
                                "-cp", classes(), "BriefThreads", kind, *map(str, words)],
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
        time.sleep(0.3)  # the last owners are named a moment later, and nothing tells that they are all there
        reader.terminate()
        reader.wait(timeout=60)
        return open(out).read(), open(path, errors="replace").read(), reader.returncode == 0
    finally:
        jvm.kill()
        jvm.wait()


def events_of(text):
    """(waiter's tid and name, owner's tid and name) of each wait for a lock, as known when it was reported."""
    names = {}
    for line in text.splitlines():
        m = re.match(r"THREAD (\d+) flags (\d+) java \d+ (.*)", line)
        if m and not int(m.group(2)) & 1:
            names[m.group(1)] = m.group(3)
        m = EVENT.match(line)
        if m and not int(m.group(5)) & 3 and (m.group(4) == "enter" or "ReentrantLock" in m.group(6)):
            yield int(m.group(3)), names.get(m.group(3), ""), int(m.group(8)), names.get(m.group(8), "")


def judge(home, directory, flags, kind, pairs, millis, doing="sleep", at_once=4, idle=0):
    """[(right, text)]"""
    said, text, exact = session(home, directory, flags, kind, pairs, millis, doing, at_once, idle)
    ids = {m.group(1): (int(m.group(2)), int(m.group(3))) for m in re.finditer(r"^PAIR (\d+) (\d+) (\d+)$", said, re.M)}
    waiters = owners = n = 0
    wrong = []
    for tid, waiter, owner_tid, owner in list(events_of(text))[LEARNS if kind != "platform" else 0:]:
        if kind == "unnamed":
            if not tid & VIRTUAL:
                continue
            pair = {(w, o) for w, o in ids.values()}
            right = [(tid - VIRTUAL) in {w for w, _ in pair}, (tid - VIRTUAL, owner_tid - VIRTUAL) in pair]
        else:
            # the names of both threads end in the pair's number
            number = (waiter + "/" + owner).rpartition("-")[2] if owner else waiter.rpartition("-")[2]
            if any(re.match("main$|joins$|ForkJoinPool|VirtualThread-unparker", name) for name in (waiter, owner)):
                continue  # threads of the program itself and of the JDK
            right = [waiter == "waiter" + LONG + number, owner == "owner" + LONG + number]
        n += 1
        waiters += right[0]
        owners += right[1]
        if not all(right):
            wrong.append((tid, waiter, owner_tid, owner))
    label = "%s %s for %d ms, %d at once, %d idle %s" % (kind, doing, millis, at_once, idle, " ".join(flags))
    return [
        (exact, label + ": accounts exact"),
        # on a busy machine a thread may get a CPU only when the lock is free again
        (n >= 0.2 * pairs, "%s: %d events of %d pairs" % (label, n, pairs)),
        (waiters >= 0.99 * n, "%s: %d of %d waiters are named %s" % (label, waiters, n, wrong[:3])),
        (owners >= 0.99 * n, "%s: %d of %d owners are named %s" % (label, owners, n, wrong[:3])),
    ]


def play(home, directory, flags, row):
    """Runs again after a failure: on a busy machine the agent may get a CPU only when a wait of 3 ms is over."""
    for attempt in range(ATTEMPTS):
        result = judge(home, directory, flags, *row)
        wrong = [text for right, text in result if not right]
        if not wrong or attempt + 1 == ATTEMPTS:
            break
        print("  once more: %s" % "; ".join(wrong))
    for right, text in result:
        check(right, text)


def main():
    home, flags = java_home(sys.argv[1]), sys.argv[2:]
    directory = tempfile.mkdtemp()
    try:
        version = int(sys.argv[1].split("-")[0])
        for row in PLATFORM_ROWS + (VIRTUAL_ROWS if version >= 21 else ()) + (UNMOUNTED_ROWS if version >= 24 else ()):
            play(home, directory, flags, row)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("%d wrong" % len(failures) if failures else "as it must be")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
