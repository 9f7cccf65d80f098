"""`kindling config reload`: every setting takes effect, or the output tells when it will; no sample is lost
meanwhile, and an invalid file changes nothing. test_reload.py. Needs root and a JDK 17."""
import fcntl
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, ONLY_MINE, Daemon, Jvm, accounts_balance, until_cpu, wait_for  # noqa: E402

NOW, ATTACH, START = "now", "JVMs that are attached to from now on", "before kindlingd starts again"
RULE = '{ allow: { environment: "KINDLING_TEST=%s" } }' % os.environ["KINDLING_TEST"]
# every setting, a different value for it, and when that takes effect
SETTINGS = {
    "socket": ("/tmp/kindling-no.sock", START),
    "user": ("root", START),
    "state_dir": ("/tmp/kindling-no-state", START),
    "agent.library": (os.path.realpath(BUILD + "/lib/libkindling.so"), ATTACH),
    "agent.ring_size": ("256KiB", ATTACH),
    "agent.pipe_size": ("64KiB", ATTACH),
    "injector": (os.path.realpath(BUILD + "/bin/kindling-inject"), ATTACH),
    "log.level": ("debug", NOW),
    "events.cpu.interval": ("5ms", NOW),
    "events.cpu.max_cpu": ("2%", NOW),
    "events.cpu.host_engine": ("false", START),
    "events.cpu.kernel": ("false", START),
    "events.offcpu.min": ("2ms", NOW),
    "events.offcpu.syscall_exits": ("true", START),
    "events.offcpu.virtual": ("true", NOW),
    "events.lock.min_wait": ("2ms", NOW),
    "events.lock.monitors": ("never", NOW),
    "events.alloc.interval": ("1MiB", NOW),
    "events.wall.interval": ("100ms", NOW),
    "events.wall.threads": ("main", NOW),
    "trace.otel": ("false", NOW),
    "trace.skywalking": ("false", NOW),
    "trace.brave": ("false", NOW),
    "trace.published": ("false", NOW),
    "trace.mdc": ("[correlation]", NOW),
    "trace.keep": ("true", NOW),
    "idle": ("[com.acme.Worker.next]", NOW),
    "quiet_attach": ("false", ATTACH),
    "discovery.bpf": ("off", START),
    "discovery.scan_interval": ("20s", START),
    "names.cri": ("unix:///run/other.sock", START),
    "attach.deadline": ("20s", ATTACH),
    "attach.tmpfs_over_tmp": ("true", ATTACH),
    "targets.mode": ("opt-in", NOW),
    "targets.attach_rate": ("7", NOW),
    "targets.max": ("100", NOW),
    "targets.foreign_profilers": ("yield", NOW),
    "targets.crash_block": ("2h", NOW),
    "store.retention": ("2h", START),
    "store.max_size": ("100MiB", START),
    "limits.memory": ("100MiB", NOW),
    "limits.decode_cpu": ("20%", NOW),
    "symbols.max_size": ("100MiB", START),
    "labels.threads": ("false", NOW),
    "labels.cloud": ("auto", NOW),
    "labels.pods": ("false", None),
    "labels.pods": ("false", None),  # either will do
    "labels.set": ("{ team: shop }", NOW),
    "labels.rules": ("[ { drop: host } ]", NOW),
    "targets.rules": ("[ %s ]" % RULE, NOW),
    "sinks": ('[ { name: away, type: exec, command: ["/bin/true"] } ]', NOW),
}
SAME = ("agent.library", "injector")  # these exist once in an installed kindlingd: the same value again is no change


def yaml(settings):
    """{"a.b": value} as a file, in which a section has its keys."""
    tree = {}
    for name, value in settings.items():
        *sections, key = name.split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
        at[key] = value

    def text(node, indent):
        return "".join("%s%s:%s" % (" " * indent, key, "\n" + text(value, indent + 2) if isinstance(value, dict) else " %s\n" % value)
                       for key, value in node.items())
    return text(tree, 0)


def pipe_bytes(pid):
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        if re.search(r"/kindling/.*/control-", os.readlink(path)):
            continue
        if re.search(r"/kindling/.*/events-", os.readlink(path)):
            own = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                return fcntl.fcntl(own, 1032)  # F_GETPIPE_SZ
            finally:
                os.close(own)
    return None


class Reload(unittest.TestCase):
    def known(self, daemon):
        """The names of all settings, from the program itself."""
        out = daemon.cli("config", "check", daemon.config).stdout
        return re.findall(r"(?m)^([a-z_.]+):", out)  # the entries of a list are on lines of their own

    def test_every_setting_is_in_force_or_the_reload_says_when(self):
        all_but_mine = '    - deny: { command: "*" }\n'  # the mode must change, too
        with Daemon(ONLY_MINE.replace("opt-in", "opt-out") + all_but_mine) as daemon, Jvm("17") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            names = self.known(daemon)
            self.assertGreater(len(names), 30)
            self.assertEqual([name for name in names if name not in SETTINGS], [])
            settings = {name: SETTINGS[name][0] for name in names}
            with open(daemon.config, "w") as f:
                f.write(yaml(settings))
            out = daemon.cli("config", "reload").stdout
            said = dict(re.findall(r"(?m)^([a-z_.]+): .* -> .* \((.*)\)$", out))
            for name in names:
                value, when = SETTINGS[name]
                if name in SAME:
                    self.assertNotIn(name, said)
                elif when:
                    self.assertIn(when, said.get(name, "nothing"), "%s: %s\n%s" % (name, value, out))
                else:
                    self.assertIn(name, said)
            # the values in force now can be seen
            def applied():
                t = daemon.target(jvm.pid)
                return t if t["interval_asked_ns"] == 5_000_000 and t["labels"].get("team") == "shop" and "host" not in t["labels"] else None
            wait_for("the new settings", applied)
            wait_for("what is collected now", lambda: set(daemon.target(jvm.pid)["events"]) >= {"cpu", "alloc", "wall"})
            self.assertEqual(daemon.status()["sinks"][0]["name"], "away")
            self.assertIn("settings.reload", daemon.read_log())
            # settings for JVMs that are attached to from now on
            before = pipe_bytes(jvm.pid)
            daemon.cli("detach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "detached")
            daemon.cli("attach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "streaming")
            self.assertEqual((before, pipe_bytes(jvm.pid)), (1 << 20, 64 << 10))
            # and settings that need a restart are reported again each time
            self.assertIn("socket: ", daemon.cli("config", "reload").stdout)

    def test_no_sample_is_lost(self):
        with Daemon(ONLY_MINE) as daemon, Jvm("17") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 20)
            begun = daemon.target(jvm.pid)["agent"]["session_ns"]
            for i in range(6):
                daemon.configure("events: {cpu: {interval: %dms}, lock: {min_wait: %dms}}\nlabels: {set: {n: \"%d\"}}\nlog: {level: %s}\n%s" % (
                    5 + i % 2 * 5, 1 + i, i, ("info", "debug")[i % 2], ONLY_MINE))
                if i % 3:
                    daemon.cli("config", "reload")
                else:
                    daemon.process.send_signal(1)
                wait_for("the new interval", lambda: daemon.target(jvm.pid)["interval_asked_ns"] == (5 + i % 2 * 5) * 1_000_000)
                until_cpu(jvm.pid, 0.3)
            wait_for("the accounts", lambda: daemon.target(jvm.pid)["agent"]["session_ns"] > begun)
            t = daemon.target(jvm.pid)
            s = accounts_balance(t)
            self.assertEqual(sum(s["dropped"].values()), 0, s)
            self.assertEqual((t["state"], t["attempts"]), ("streaming", 1))
            self.assertEqual(len(re.findall(r"target\.state pid=%d " % jvm.pid, daemon.read_log())), 2)  # injecting, streaming: one session
            self.assertGreater(s["coverage"], 0.8, s)
            print("6 reloads: %d samples taken, all delivered, coverage %.3f" % (s["taken"], s["coverage"]))
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_times_off_the_cpu_come_and_go_without_a_lost_sample(self):
        with Daemon("events: {cpu: {}, lock: {}}\n" + ONLY_MINE) as daemon, Jvm("17") as jvm:
            if daemon.status()["offcpu"]["state"] == "refused":
                self.assertIn("cannot be collected: ", daemon.cli("doctor", str(jvm.pid)).stdout)
                self.skipTest(daemon.status()["offcpu"]["why"])
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 20)
            self.assertIn("can be collected, and are not", daemon.cli("doctor", str(jvm.pid)).stdout)
            begun = daemon.target(jvm.pid)["agent"]["session_ns"]
            times = 0
            for text, on in (("offcpu: {}", True), ("offcpu: {min: 100us}", True), ("", False), ("offcpu: {min: 200us}", True)):
                daemon.configure("events: {cpu: {}, lock: {}, %s}\n%s" % (text, ONLY_MINE))
                self.assertIn("events", daemon.cli("config", "reload").stdout)
                wait_for("times off the CPU: %s" % on, lambda: ("offcpu" in daemon.target(jvm.pid)["events"]) == on)
                if on:
                    wait_for("the kernel to count", lambda: daemon.status()["offcpu"]["targets"] == 1)
                    wait_for("times off the CPU", lambda: daemon.target(jvm.pid)["offcpu"]["delivered"] > times)
                    times = daemon.target(jvm.pid)["offcpu"]["delivered"]
                    self.assertIn("times off the CPU are collected", daemon.cli("doctor", str(jvm.pid)).stdout)
                else:
                    wait_for("the kernel not to count", lambda: daemon.status()["offcpu"]["targets"] == 0)
                until_cpu(jvm.pid, 0.3)
            wait_for("the accounts", lambda: daemon.target(jvm.pid)["agent"]["session_ns"] > begun)
            t = daemon.target(jvm.pid)
            s = accounts_balance(t)
            self.assertEqual(sum(s["dropped"].values()), 0, s)
            self.assertEqual(sum(t["offcpu"]["dropped"].values()), 0, t["offcpu"])
            self.assertEqual((t["state"], t["attempts"]), ("streaming", 1))
            self.assertEqual(len(re.findall(r"target\.state pid=%d " % jvm.pid, daemon.read_log())), 2)
            print("4 reloads: %d samples, %d times off the CPU, none lost" % (s["taken"], t["offcpu"]["taken"]))
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_host_that_cannot_measure_them_says_one_sentence_and_the_rest_goes_on(self):
        def said(daemon):
            return re.sub(r"\s+", " ", daemon.cli("status").stdout)

        without = ("setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon")
        with Daemon(ONLY_MINE, wrap=without) as daemon, Jvm("17") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            self.assertIn("time off the CPU is not measured (off-CPU time needs the host engine); everything else is", said(daemon))
            self.assertNotIn("offcpu", daemon.read_log())
            wait_for("everything else", lambda: set(daemon.target(jvm.pid)["events"]) == {"cpu", "lock"} and
                     daemon.target(jvm.pid)["samples"]["delivered"] > 20)
            self.assertNotIn("offcpu", [n["step"] for n in daemon.target(jvm.pid)["notes"]])
            done = daemon.cli("report", "-e", "offcpu", str(jvm.pid), "-o", "-", "-f", "txt", check=False)
            self.assertIn("offcpu events are not collected: off-CPU time needs the host engine", done.stdout + done.stderr)
            self.assertIn("KnownShares", daemon.cli("report", str(jvm.pid), "-o", "-", "-f", "txt").stdout)
            # where somebody asks for them, it is not said in passing
            daemon.configure("events: [cpu, offcpu]\n" + ONLY_MINE)
            daemon.cli("config", "reload")
            self.assertIn("time off the CPU is not measured: off-CPU time needs the host engine", said(daemon))

    def test_too_many_times_off_the_cpu_are_told_of_until_they_fit(self):
        def note():
            notes = [n["what"] for n in daemon.target(jvm.pid)["notes"] if n["step"] == "offcpu"]
            return ([n for n in notes if "run queue" not in n] or [None])[-1]  # this is about waits

        with Daemon("events: {cpu: {}, offcpu: {min: 10us}}\n" + ONLY_MINE) as daemon, Jvm("17", "ParkStorm", "2") as jvm:
            if daemon.status()["offcpu"]["state"] == "refused":
                self.skipTest(daemon.status()["offcpu"]["why"])
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("waits for work give way", note)
            self.assertRegex(note(), "^of threads that usually wait for work or locks most times off the CPU of less than [0-9.]+ ?[um]s are no events now|^only (some )?times off")
            too_many = re.compile(r"only times off the CPU of [\d.]+ ?\w+ and more are events now, because those of 10us and more are too many")
            wait_for("too many for that", lambda: too_many.search(note() or ""))
            self.assertGreater(daemon.status()["offcpu"]["min_ns"], 10_000)
            said = " ".join(daemon.cli("status").stdout.split())
            self.assertIn("only times off the CPU of", said)
            self.assertRegex(said, r"of \d+ intervals \d+ have a Java stack only if they are lock events, too: \d+ were over the budget of signals")
            self.assertRegex(said, r"\d+ are only in the sums of their threads")
            daemon.configure("events: {cpu: {}, offcpu: {min: 1m}}\n" + ONLY_MINE)
            daemon.cli("config", "reload")
            wait_for("no note", lambda: not note())
            self.assertEqual(daemon.status()["offcpu"]["min_ns"], 60_000_000_000)

    def test_a_wrong_file_changes_nothing_and_says_where(self):
        with Daemon(ONLY_MINE) as daemon:
            before = self.in_force(daemon)
            for text, words in (("events:\n  cpu:\n    interval: 50\n", (r":5: ", r"events\.cpu\.interval", '"50"')),
                                ("log:\n  level: loud\n", (r":4: ", r"log\.level", '"loud"')),
                                ("targets:\n  max: 5000\n", (r":4: ", r"targets\.max", "5000")),
                                ("limits:\n  telepathy: 5m\n", (r":4: ", "limits.telepathy")),
                                ("targets:\n  rules:\n    - deny: { uid: all }\n", (r":5: ", r"targets\.rules\[0\]", '"all"'))):
                daemon.configure(text)
                done = daemon.cli("config", "reload", check=False)
                self.assertEqual(done.returncode, 1)
                for word in (r"kindlingd\.yaml",) + words:
                    self.assertRegex(done.stderr, word)
                self.assertIn("old settings stay in force", done.stderr)
            daemon.configure(ONLY_MINE)
            self.assertEqual(daemon.cli("config", "reload").stdout, "nothing has changed\n")
            self.assertEqual(self.in_force(daemon), before)

    def in_force(self, daemon):
        return json.loads(daemon.cli("status", "--json").stdout)["version"], daemon.read_log().count("settings.change ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
