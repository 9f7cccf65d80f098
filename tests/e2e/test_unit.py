"""kindlingd as its systemd unit runs it: what the unit's sandbox leaves of the file system, the network and the
capabilities is enough for JVMs of the host. test_unit.py MAJOR. Needs root.

There is no systemd here. The namespaces are made as it makes them: a mount namespace of its own that the host's mounts
still come into, everything read-only but the service's directories (ProtectSystem=strict), /tmp and /home empty ones
(PrivateTmp, ProtectHome), no network but a loopback that is down (PrivateNetwork); capabilities are cut to the unit's,
and so are system calls, by a filter made of the unit's lists. All of the unit under a systemd, but in a pid namespace of
its own, where there is no BPF: test_systemd.py."""
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, HERE, Daemon, Jvm, wait_for  # noqa: E402

MAJOR = "25"
UNIT = os.path.join(HERE, "..", "..", "deploy", "systemd", "kindlingd.service")
READER = os.path.join(os.path.dirname(UNIT), "kindling-filters.service")
# the directory of the test's daemon (where its --config FILE is) plays RuntimeDirectory and StateDirectory; the build,
# which may be in /tmp or /home, plays /usr
SANDBOX = """dir=$(dirname "$4") build=$(dirname "$(dirname "$2")")
mount --bind "$dir" /mnt
mount --bind "$build" /srv
mount -t tmpfs private /tmp
mount -t tmpfs none /home
mkdir -p "$dir" "$build"
mount --move /mnt "$dir"
mount --move /srv "$build"
mount -o remount,bind,ro /
caps=$1; shift
exec setpriv --no-new-privs --inh-caps=-all --bounding-set="$caps" python3 -c "$FILTER" "$CALLS" "$@"
"""
# arguments of python3 -c: the system calls that fail with EPERM, and the program to run
FILTER = """import ctypes, os, struct, sys
calls = [int(n) for n in sys.argv[1].split()]
code = [struct.pack("HBBI", 0x20, 0, 0, 0)]
for n in calls:
    code += [struct.pack("HBBI", 0x15, 0, 1, n), struct.pack("HBBI", 0x06, 0, 0, 0x00050001)]
code = b"".join(code) + struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(text)))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0) != 0:
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
"""
# each of these settings installs a seccomp filter, and a process that has one cannot read those of others
FILTERS = re.compile(r"^(SystemCall\w+|RestrictAddressFamilies|RestrictNamespaces|RestrictRealtime|RestrictSUIDSGID|"
                     "LockPersonality|MemoryDenyWriteExecute|PrivateDevices|ProtectClock|ProtectHostname|"
                     "ProtectKernelModules|ProtectKernelLogs|ProtectKernelTunables)$")


def lines(unit=UNIT):
    with open(unit) as f:
        return [line.strip().split("=", 1) for line in f if re.match(r"\w+=", line)]


def settings(unit=UNIT):
    return dict(lines(unit))


def refused_calls():
    """The numbers of the system calls that SystemCallFilter= forbids on this machine, with systemd's groups resolved."""
    words = " ".join(value.removeprefix("~") for name, value in lines() if name == "SystemCallFilter").split()
    names = set()
    while words:
        word = words.pop()
        if word[0] != "@":
            names.add(word)
            continue
        listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], capture_output=True, text=True, check=True).stdout
        words += [line.strip() for line in listed.splitlines()[1:] if re.match(r"    [@\w]+$", line)]
    header = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-"], input="", capture_output=True, text=True, check=True).stdout
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)$", header, re.M))
    return [numbers[name] for name in sorted(names) if name in numbers]


def capabilities():
    words = settings()["CapabilityBoundingSet"].split()
    return ",".join(["-all"] + ["+" + w.lower().removeprefix("cap_") for w in words])


def sandboxed():
    os.environ["FILTER"], os.environ["CALLS"] = FILTER, " ".join(refused_calls())
    return Daemon(wrap=("unshare", "--mount", "--net", "--propagation", "slave", "sh", "-ec", SANDBOX, "sh", capabilities()))


class Unit(unittest.TestCase):
    def test_bounds_are_there(self):
        unit = settings()
        self.assertRegex(unit["MemoryMax"], r"^\d+M$")
        self.assertGreaterEqual(int(unit["OOMScoreAdjust"]), 0)
        for name, value in (("LimitCORE", "0"), ("DevicePolicy", "closed"), ("ProtectSystem", "strict"), ("PrivateTmp", "yes"),
                            ("PrivateNetwork", "yes"), ("ProtectHome", "yes"), ("ProtectControlGroups", "yes"),
                            ("NoNewPrivileges", "yes"), ("NotifyAccess", "main")):
            self.assertEqual(unit.get(name), value, name)
        self.assertIn("CPUWeight", unit)

    def test_the_reader_of_filters_has_no_filter(self):
        unit = settings(READER)
        self.assertEqual([name for name in unit if FILTERS.match(name)], [])
        self.assertEqual(unit["NoNewPrivileges"], "yes")

    def test_a_jvm_of_the_host_is_profiled_out_of_the_sandbox(self):
        with sandboxed() as daemon, Jvm(MAJOR) as jvm:
            root = "/proc/%d/root" % daemon.process.pid
            self.assertLessEqual(set(os.listdir(root + "/tmp")), {os.path.basename(daemon.dir), BUILD.split("/")[2]})  # the sandbox is one
            with self.assertRaises(OSError):
                open(root + "/var/kindling-test", "w")
            with open("/proc/%d/status" % daemon.process.pid) as f:
                status = dict(line.split(":", 1) for line in f)
            self.assertEqual((status["Seccomp"].strip(), status["NoNewPrivs"].strip()), ("2", "1"))

            daemon.wait_state(jvm.pid, "streaming")
            # BPF and the kernel's clocks work if they work for a daemon without a sandbox
            with Daemon() as free:
                self.assertEqual(daemon.status()["host_engine"]["state"] == "refused", free.status()["host_engine"]["state"] == "refused")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            out = daemon.dir + "/out.collapsed"
            daemon.cli("record", str(jvm.pid), "-d", "3s", "-o", out)
            with open(out) as f:
                self.assertRegex(f.read(), r"KnownShares\.\w+")
            wait_for("a window on the disk", lambda: daemon.status()["store"]["windows"] > 0)
            # the libraries were read through the daemon's own mounts
            wait_for("tables of its libraries", lambda: [
                name for name in os.listdir(daemon.dir + "/state/symbols") if name.startswith("uid-")])
            daemon.cli("detach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "detached")
            self.assertEqual(list(self.left(jvm.pid)), [])
            self.assertEqual(jvm.end(), ("END\n", ""))

    def filtered(self, path):
        """A daemon with a seccomp filter and with @path as the socket of the service that reads filters."""
        os.environ["KINDLING_FILTERS_SOCKET"] = path
        self.addCleanup(os.environ.pop, "KINDLING_FILTERS_SOCKET", None)
        return Daemon(wrap=("python3", "-c", FILTER, ""))

    def test_no_jvm_is_attached_to_before_who_reads_filters_is_there(self):
        with tempfile.TemporaryDirectory() as directory, Jvm(MAJOR) as jvm:
            path = directory + "/filters.sock"
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:  # left behind by a container that was killed
                dead.bind(path)
            with self.filtered(path) as daemon:
                t = wait_for("why it waits", lambda: daemon.target(jvm.pid) if (daemon.target(jvm.pid) or {}).get("reason") else None)
                self.assertEqual((t["state"], t["reason"]), ("found", "waits up to 10 s for the process that reads seccomp filters, at %s" % path))
                self.assertIn("waits up to 10 s", daemon.cli("status").stdout)
                with subprocess.Popen([BUILD + "/bin/kindling-inject", "filters", path]) as reader:
                    try:
                        daemon.wait_state(jvm.pid, "streaming")
                        self.assertIsNone(daemon.status()["attach"].get("filters_note"))
                        self.assertRegex(daemon.read_log(), r"daemon.filters socket=\S+\n")
                    finally:
                        reader.kill()

    def test_the_wait_for_the_reader_of_filters_ends(self):
        with tempfile.TemporaryDirectory() as directory, Jvm(MAJOR) as jvm, self.filtered(directory + "/filters.sock") as daemon:
            begin = time.monotonic()
            daemon.wait_state(jvm.pid, "streaming")
            self.assertGreater(time.monotonic() - begin, 5)
            self.assertIn("seccomp filters: nobody answers at %s/filters.sock, so JVMs are attached to without being checked" % directory,
                          daemon.cli("status").stdout)

    def left(self, pid):
        """Files that an attach to @pid left in the host's /tmp."""
        for path, _, names in os.walk("/tmp/kindling"):
            for name in names:
                if re.search(r"\b%d\b" % pid, name):
                    yield os.path.join(path, name)

    def test_it_goes_on_after_a_restart(self):
        with sandboxed() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            daemon.kill()
            time.sleep(1)  # systemd, too, leaves a moment between an end and a restart
            daemon.start()
            daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_systemd_knows_every_setting(self):
        try:
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT], capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("systemd-analyze is not there")
        self.assertNotIn("Unknown key", done.stderr)
        found = re.search(r"exposure level for .*: ([\d.]+)", done.stdout)
        if not found:
            self.skipTest("systemd-analyze does not read files yet")
        exposure = float(found.group(1))
        print("systemd-analyze security: %.1f" % exposure)
        self.assertLessEqual(exposure, 3.5)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
