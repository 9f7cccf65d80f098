"""kindlingd as `cmake --install` lays it out, in sbin, finds its programs in bin and its agent in lib: an attach works,
and functions of native libraries have names. test_installed.py MAJOR. Needs root."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, wait_for  # noqa: E402

MAJOR = "17"
# the settings name paths of the build tree: this daemon uses its own defaults
LAUNCH = "#!/bin/sh\nshift\nexec %s/sbin/kindlingd \"$@\"\n"
# a private function, whose name only kindling-symbols can find: the dynamic linker does not know it
NAMED = re.compile(r"\bthread_native_entry\b")


class Installed(unittest.TestCase):
    def test_attach_and_names(self):
        with tempfile.TemporaryDirectory(prefix="kindling-installed-") as root:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", root], check=True, stdout=subprocess.DEVNULL)
            launch = root + "/launch"
            with open(launch, "w") as f:
                f.write(LAUNCH % root)
            os.chmod(launch, 0o755)
            with Jvm(MAJOR) as jvm, Daemon(wrap=[launch]) as daemon:
                daemon.wait_state(jvm.pid, "streaming")
                self.assertEqual(os.readlink("/proc/%d/exe" % daemon.process.pid), root + "/sbin/kindlingd")
                wait_for("names of native functions", lambda: NAMED.search(
                    daemon.cli("report", str(jvm.pid), "--last", "1m", "-o", "-", check=False).stdout))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(77)
    if len(sys.argv) > 1:
        MAJOR = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
