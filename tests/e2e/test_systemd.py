"""kindlingd under a real systemd: JVMs in services with sandboxes of many kinds are profiled or refused with the
exact reason; the watchdog ends a daemon that hangs; reload and stop. test_systemd.py MAJOR. Needs root,
systemd-container."""
import json
import os
import re
import stat
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import skip, wait_for  # noqa: E402
from systemd import Systemd  # noqa: E402

MAJOR = "17"
UNIT = """[Service]
ExecStart=/opt/jdk/bin/java -Xmx32m -XX:+UseSerialGC -cp /opt/kindling-test/classes Service
Environment=KINDLING_TEST=%s
%s
"""
USUAL = "LockPersonality=yes\nProtectKernelTunables=yes\nRestrictNamespaces=yes\nSystemCallFilter=@system-service"
# the settings in a service's unit, and the result: "" = its JVM streams, otherwise the reason
JVMS = {
    "plain": ("", ""),
    "private-tmp": ("PrivateTmp=yes", ""),
    "dynamic-user": ("DynamicUser=yes", ""),
    "noexec": ("NoExecPaths=/tmp", ""),
    "noexec-all": ("NoExecPaths=/\nExecPaths=/usr /opt /lib /lib64 /etc", ""),
    "protect-proc": ("User=nobody\nProtectProc=invisible\nProcSubset=pid\nPrivateTmp=yes", ""),
    "private-users": ("User=nobody\nPrivateUsers=yes\nPrivateTmp=yes\nPrivateNetwork=yes", ""),
    "strict": ("ProtectSystem=strict\nPrivateTmp=yes", ""),
    "strict-tmp": ("ProtectSystem=strict", r"read-only|writable"),
    "filter": ("User=nobody\nNoNewPrivileges=yes\n" + USUAL, ""),
    "deadly-filter": ("SystemCallFilter=~timer_create", r"seccomp filter would kill the JVM when the agent calls timer_create\(\)"),
    "disabled": ("Environment=KINDLING_DISABLE=1", r"KINDLING_DISABLE"),
}


UNPRIVILEGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "systemd", "examples", "unprivileged.conf")


def service(name):
    return "jvm-%s.service" % name


class Units(unittest.TestCase):
    """All of these share one systemd and one daemon, and run in this order."""

    @classmethod
    def setUpClass(cls):
        cls.bed = Systemd(MAJOR)
        cls.addClassCleanup(cls.bed.end)
        for name, (settings, _) in JVMS.items():
            cls.bed.write("/etc/systemd/system/" + service(name), UNIT % (os.environ["KINDLING_TEST"], settings))
        # a pid namespace has no BPF, so new JVMs are found by scans of /proc
        cls.settings("  scan_interval: 30s", "  scan_interval: 1s")
        # less than the default of thirty seconds, but long enough for a busy machine
        cls.bed.write("/etc/systemd/system/kindlingd.service.d/test.conf", "[Service]\nWatchdogSec=6s\n")
        cls.bed.run("systemctl", "daemon-reload")
        cls.bed.run("systemctl", "start", "kindlingd", *map(service, JVMS))
        cls.pids = {name: int(cls.bed.ask(service(name), "MainPID")) for name in JVMS}

    @classmethod
    def settings(cls, old, new):
        """Changes a line of the file; returns the old line."""
        file = cls.bed.read("/etc/kindling/kindlingd.yaml")
        assert old in file, old
        cls.bed.write("/etc/kindling/kindlingd.yaml", file.replace(old, new))
        return file

    def status(self):
        """The daemon's answer; {} while it is restarting."""
        done = self.bed.run("kindling", "status", "--json", check=False)
        return {t["pid"]: t for t in json.loads(done.stdout)["targets"]} if done.returncode == 0 else {}

    def streaming(self):
        known = self.status()
        return [name for name, pid in self.pids.items() if known.get(pid, {}).get("state") == "streaming"]

    def wait_streaming(self):
        wanted = [name for name, (_, reason) in JVMS.items() if not reason]
        try:
            wait_for("streams", lambda: set(self.streaming()) == set(wanted), 90)
        except AssertionError:
            raise AssertionError("not streaming: %s\n%s\n%s" % (set(wanted) - set(self.streaming()), self.bed.run("kindling", "status").stdout,
                                                                self.bed.journal("kindlingd")))

    def reason(self, name):
        t = self.status().get(self.pids[name])
        return t and t["state"] in ("failed", "excluded") and t.get("reason")

    def test_1_each_streams_or_says_why(self):
        self.wait_streaming()
        for name, (_, reason) in JVMS.items():
            if reason:
                self.assertRegex(wait_for("a reason for " + name, lambda: self.reason(name)), reason)
        # kindling-upload has another account, and may read new files of the history
        self.assertTrue(os.stat(self.bed.root + "/var/lib/kindling/segments").st_mode & stat.S_ISGID)
        # the daemon has a filter of its own, and still recognised the deadly one
        with open("%s/proc/%s/status" % (self.bed.root, self.bed.ask("kindlingd", "MainPID"))) as f:
            self.assertIn("\nSeccomp:\t2\n", f.read())
        self.assertEqual(self.bed.ask("kindling-filters", "ActiveState"), "active")
        for name in JVMS:
            self.assertEqual(self.bed.ask(service(name), "NRestarts"), "0")
            self.assertEqual(self.bed.ask(service(name), "ActiveState"), "active")

    def test_2_systemctl_says_how_many(self):
        text = "%d JVMs streaming, 2 failed, 1 excluded" % sum(not reason for _, reason in JVMS.values())
        wait_for(text, lambda: self.bed.ask("kindlingd", "StatusText") == text)

    def test_2_the_journal_has_fields(self):
        pid = next(self.pids[name] for name, (_, reason) in JVMS.items() if not reason)
        lines = self.bed.run("journalctl", "--no-pager", "-o", "json", "-u", "kindlingd", "KINDLING_PID=%d" % pid, "KINDLING_TO=streaming").stdout
        line = json.loads(lines.splitlines()[0])
        self.assertEqual((line["PRIORITY"], line["SYSLOG_IDENTIFIER"], line["KINDLING_EVENT"]), ("6", "kindlingd", "target.state"))
        self.assertTrue(line["MESSAGE"].startswith("target.state pid=%d " % pid), line)
        self.assertIn("log.txt", self.bed.run("kindling", "bugreport", "-o", "/run/report.tar.gz").stdout)

    def test_2_metrics_over_tcp(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/monitoring/kindling-metrics.service")) as f:
            self.bed.write("/run/systemd/system/kindling-metrics.service", f.read())
        self.bed.run("systemctl", "daemon-reload")
        self.bed.run("systemctl", "start", "kindling-metrics")
        ask = "exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        wait_for("metrics", lambda: 'kindling_targets{state="streaming"}' in self.bed.run("bash", "-c", ask, check=False).stdout)
        self.bed.run("systemctl", "stop", "kindling-metrics")
        self.assertEqual(self.bed.ask("kindling-metrics", "Result"), "success")

    def test_3_reload(self):
        file = self.settings("level: info", "level: loud")
        done = self.bed.run("systemctl", "reload", "kindlingd", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(self.bed.journal("kindlingd"), r"kindlingd.yaml:\d+")
        self.bed.run("systemctl", "kill", "-s", "HUP", "--kill-who=main", "kindlingd")
        wait_for("the line", lambda: "old settings stay in force" in self.bed.ask("kindlingd", "StatusText"))
        self.bed.write("/etc/kindling/kindlingd.yaml", file.replace("level: info", "level: debug"))
        self.bed.run("systemctl", "reload", "kindlingd")
        self.wait_streaming()
        self.assertEqual(self.bed.ask("kindlingd", "NRestarts"), "0")

    def stops_and_restarts(self, which):
        """Two processes, of which the first is the service's main process."""
        restarts = int(self.bed.ask("kindlingd", "NRestarts"))
        main = int(self.bed.ask("kindlingd", "MainPID"))
        self.bed.run("kill", "-STOP", str(main) if which == "warden" else
                     self.bed.run("pgrep", "-P", str(main), "kindlingd").stdout.split()[0])
        wait_for("a restart", lambda: int(self.bed.ask("kindlingd", "NRestarts")) == restarts + 1)
        self.wait_streaming()
        self.assertNotEqual(int(self.bed.ask("kindlingd", "MainPID")), main)

    def test_4_the_watchdog_ends_a_data_process_that_stands_still(self):
        # the unit has a /proc of its own, so what is hidden in the host's does not matter
        self.bed.run("mount", "-o", "remount,hidepid=invisible", "/proc")
        self.stops_and_restarts("data")
        self.assertIn("Watchdog timeout", self.bed.run("journalctl", "--no-pager", "-o", "cat").stdout)

    def test_5_the_watchdog_ends_a_warden_that_stands_still(self):
        self.stops_and_restarts("warden")

    def test_6_stop_leaves_nothing(self):
        self.bed.run("systemctl", "stop", "kindlingd")
        self.assertEqual(self.bed.ask("kindlingd", "Result"), "success")
        self.assertEqual(self.bed.run("pgrep", "-l", "kindling", check=False).stdout, "")
        for path in ("/run/kindling", "/run/kindling-filters.sock", "/tmp/kindling"):
            self.assertFalse(os.path.lexists(self.bed.root + path), path)
        for name, pid in self.pids.items():
            self.assertEqual(self.bed.ask(service(name), "MainPID"), str(pid), name)  # the same JVM all the time
            self.assertEqual(self.left(pid), [], name)
            self.assertNotIn("kindling", "".join(line.split()[4] for line in self.bed.read("/proc/%d/mountinfo" % pid).splitlines()), name)
            self.assertNotIn("WARNING", self.bed.journal(service(name)), name)

    def test_7_without_root(self):
        with open(UNPRIVILEGED) as f:
            self.bed.write("/etc/systemd/system/kindlingd.service.d/unprivileged.conf", f.read())
        self.settings("user: kindling", "user: self")
        self.bed.run("systemctl", "daemon-reload")
        self.bed.run("systemctl", "start", "kindlingd")
        wait_for("the JVM of that account", lambda: "filter" in self.streaming())
        with open("%s/proc/%s/status" % (self.bed.root, self.bed.ask("kindlingd", "MainPID"))) as f:
            self.assertIn("\nCapBnd:\t%016x\n" % 0, f.read())
        self.assertLessEqual(set(self.streaming()), {"filter", "protect-proc", "private-users"})  # those of nobody
        self.bed.run("systemctl", "stop", "kindlingd")
        self.assertEqual(self.left(self.pids["filter"]), [])

    def left(self, pid):
        """Our names and open descriptors in the process."""
        root = "%s/proc/%d/" % (self.bed.root, pid)
        found = ["/tmp/" + n for n in os.listdir(root + "root/tmp") if n.startswith(("kindling", ".attach_pid"))]
        for fd in os.listdir(root + "fd"):
            try:
                found += [t for t in [os.readlink(root + "fd/" + fd)] if re.search("events-|control-", t)]
            except FileNotFoundError:
                pass
        return found


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("needs root")
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2, failfast=True)
