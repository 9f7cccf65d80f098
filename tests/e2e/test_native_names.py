"""Names of native frames: test_native_names.py MAJOR. Needs root. A program that reads the clock in a loop and makes garbage."""
import collections
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import Daemon, Jvm  # noqa: E402

MAJOR = "17"
NAMELESS = re.compile(r"\[[^;]*\.so[^;]*\]|\[vdso\]|\[[^;]*\+0x[0-9a-f]+\]")


class NativeNames(unittest.TestCase):
    def test_clock_and_native_threads_have_names(self):
        with Daemon() as daemon, Jvm(MAJOR, "NativeNames", options=("-Xmx128m", "-XX:+UseParallelGC")) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(2)
            out = daemon.dir + "/out.collapsed"
            daemon.cli("record", str(jvm.pid), "-d", "6s", "-i", "1ms", "-o", out)
            with open(out) as f:
                rows = [line.rstrip("\n").rsplit(" ", 1) for line in f]
        roots, leaves, nameless = (collections.Counter() for _ in range(3))
        for stack, weight in rows:
            frames = stack.split(";")
            roots[frames[0]] += int(weight)
            leaves[frames[-1]] += int(weight)
            for frame in filter(NAMELESS.fullmatch, frames):
                nameless[frame] += int(weight)
        total = sum(int(weight) for _, weight in rows)
        print("JDK %s: leaves %s\n  roots %s\n  nameless %s" % (
            MAJOR, *({k: round(v / total, 4) for k, v in c.most_common(4)} for c in (leaves, roots, nameless))))
        self.assertGreater(leaves["__vdso_clock_gettime"], 0.1 * total)
        # stacks that reach the native root; the others begin with Java's run()
        self.assertTrue(any(s.startswith(("clone3;start_thread;", "clone;start_thread;", "__clone;start_thread;")) for s, _ in rows))
        self.assertEqual([k for k in nameless if "+0x" in k or "vdso" in k], [])
        # private functions of libc have names only where its debug file is installed; the first two of a thread always
        self.assertLess(nameless["[libjvm.so]"], 0.02 * total)
        self.assertEqual([s for s, _ in rows if "[libc.so.6]" in s.split(";")[:2]], [])


if __name__ == "__main__":
    MAJOR = sys.argv.pop(1) if len(sys.argv) > 1 else MAJOR
    unittest.main()
