"""Which JVMs are profiled and which are not: rules, attach, detach, limits, crashes. test_control.py MAJOR. Needs
root."""
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, Daemon, Jvm, agent_copies, classes, java_home, java_home_for_all, starts, thread_names, timers, wait_for, wait_seen_by_all  # noqa: E402

MAJOR = "17"
MINE = '    - allow: { environment: "KINDLING_TEST=%s" }\n' % os.environ["KINDLING_TEST"]


def targets(rules="", settings=""):
    """Settings with @rules in front of the rule that leaves other tests' JVMs alone."""
    return "targets:\n  mode: opt-in\n%s  rules:\n%s%s" % (settings, rules, MINE)


def variables(**values):
    """A JVM started meanwhile inherits these."""
    class Set:
        def __enter__(self):
            os.environ.update(values)

        def __exit__(self, *unused):
            for key in values:
                del os.environ[key]
    return Set()


def open_files(pid):
    """The files to which the process's descriptors refer."""
    files = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            files.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            pass  # closed meanwhile
    return files


def untouched(test, pid):
    """Nothing of the agent is left in the JVM: no thread, no timer, no descriptor, no file."""
    # the agent's thread sends BYE and then ends, on a busy machine a moment later
    wait_for("the end of our thread", lambda: "kindling" not in thread_names(pid))
    test.assertEqual(timers(pid), 0)
    links = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)
             if os.path.islink("/proc/%d/fd/%s" % (pid, fd))]
    test.assertEqual([link for link in links if "kindling" in link and not link.endswith(".jar")
                      and "/classes-" not in link], [])


class Rules(unittest.TestCase):
    def test_the_owners_no_is_stronger_than_everything(self):
        with variables(KINDLING_DISABLE="1"):
            jvm = Jvm(MAJOR)
        with jvm, Daemon() as daemon:
            t = daemon.wait_state(jvm.pid, "excluded")
            self.assertIn("KINDLING_DISABLE", t["reason"])
            self.assertEqual(t["reason_step"], "owner")
            done = daemon.cli("attach", str(jvm.pid), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("KINDLING_DISABLE", done.stderr)
            done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "record", str(jvm.pid), "-d", "1s", "-o",
                                   daemon.dir + "/x.txt"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("KINDLING_DISABLE", done.stderr)
            untouched(self, jvm.pid)
            self.assertEqual(agent_copies(jvm.pid), 0)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_rule_keeps_out_and_is_named(self):
        with Jvm(MAJOR) as shares, Jvm(MAJOR, "Idle") as idle:
            rule = '    - deny: { command: "*Idle", uid: 0 }\n'
            with Daemon(targets(rule)) as daemon:
                daemon.wait_state(shares.pid, "streaming")
                t = daemon.wait_state(idle.pid, "excluded")
                self.assertRegex(t["reason"], r'targets.rules\[0\] \(kindlingd.yaml:\d+\): command "\*Idle"')
                self.assertIn("targets.rules[0]", daemon.cli("status").stdout)
                done = daemon.cli("attach", str(idle.pid), check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("targets.rules[0]", done.stderr)
                self.assertEqual(agent_copies(idle.pid), 0)

    def test_opt_in_takes_nobody_in_but_by_hand(self):
        with Daemon("targets:\n  mode: opt-in\n") as daemon, Jvm(MAJOR) as jvm:
            self.assertIn("opt-in", daemon.wait_state(jvm.pid, "excluded")["reason"])
            daemon.cli("attach", str(jvm.pid))
            self.assertEqual(daemon.target(jvm.pid)["state"], "streaming")

    def test_a_new_rule_takes_an_agent_out_that_a_killed_daemon_left(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            daemon.kill()
            daemon.configure(targets("    - deny: { command: KnownShares }\n"))
            daemon.start()
            daemon.wait_state(jvm.pid, "excluded")
            wait_for("no agent", lambda: "kindling" not in thread_names(jvm.pid))
            untouched(self, jvm.pid)

    def test_an_agent_is_found_again_beside_the_daemon_of_another_test(self):
        """A daemon that has just started would detach agents that it finds without a reader."""
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            for turn in range(10):
                with Daemon("targets:\n  mode: opt-in\n"):
                    daemon.kill()
                    daemon.start()
                    daemon.wait_state(jvm.pid, "streaming")
                    self.assertEqual(daemon.read_log().count("target.reattach pid=%d" % jvm.pid), turn + 1)


class ByHand(unittest.TestCase):
    def test_detach_lasts_until_attach(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            out = daemon.cli("detach", str(jvm.pid)).stdout
            self.assertEqual(out, "%d KnownShares is detached\n" % jvm.pid)
            untouched(self, jvm.pid)
            t = daemon.target(jvm.pid)
            self.assertRegex(t["reason"], r"^detached by uid 0 at \d{4}-\d\d-\d\dT[\d:]+Z; `kindling attach %d` " % jvm.pid)
            self.assertRegex(daemon.cli("status").stdout, "detached by uid 0 at")
            for stop in (daemon.stop, daemon.kill):
                stop()
                daemon.start()
                self.assertEqual(daemon.wait_state(jvm.pid, "detached")["reason"], t["reason"])
            time.sleep(1)  # no daemon comes back to it
            untouched(self, jvm.pid)
            t = json.loads(daemon.cli("attach", "--json", str(jvm.pid)).stdout)
            self.assertEqual((t["pid"], t["state"], t["reason"]), (jvm.pid, "streaming", None))
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_new_rule_that_allows_it_ends_a_detach(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            daemon.cli("detach", str(jvm.pid))
            daemon.stop()
            daemon.configure(targets("    - allow: { command: KnownShares, uid: 0 }\n"
                                     "    - deny: { uid: 1-2 }\n"))
            daemon.start()
            daemon.wait_state(jvm.pid, "streaming")

    def test_twenty_times(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            for _ in range(20):
                daemon.cli("detach", str(jvm.pid))
                daemon.cli("attach", str(jvm.pid))
            daemon.cli("detach", str(jvm.pid))
            self.assertEqual(agent_copies(jvm.pid), 1)  # the library has the flag nodelete: it stays mapped, once
            untouched(self, jvm.pid)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_errors(self):
        with Daemon() as daemon:
            for verb in ("attach", "detach"):
                done = daemon.cli(verb, "nobody-is-called-so", check=False)
                self.assertEqual((done.returncode, "no JVM is called" in done.stderr), (1, True), done)
                self.assertEqual(daemon.cli(verb, check=False).returncode, 2)
                self.assertIn("Usage: kindling " + verb, daemon.cli(verb, "--help").stdout)
                done = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", verb, "1"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 3)
            with Jvm(MAJOR) as jvm:
                daemon.wait_state(jvm.pid, "streaming")
                jvm.end()
                daemon.wait_state(jvm.pid, "gone")
                done = daemon.cli("detach", str(jvm.pid), check=False)
                self.assertEqual((done.returncode, "has ended" in done.stderr), (1, True), done)


class Doctor(unittest.TestCase):
    def doctor(self, daemon, *args, **how):
        socket = daemon.socket if daemon else "/nowhere"
        done = subprocess.run([BUILD + "/bin/kindling", "--socket", socket, "doctor", "--json", *args], capture_output=True,
                              text=True, timeout=60, **how)
        return {o["pid"]: o for o in map(json.loads, done.stdout.splitlines())}, done

    def checks(self, one):
        return {c["check"]: c for c in one["checks"]}

    def test_a_healthy_one_is_looked_at_and_not_touched(self):
        with Jvm(MAJOR) as jvm:
            there = os.path.exists("/tmp/.java_pid%d" % jvm.pid)  # left by a dead JVM with this pid
            found, done = self.doctor(None, str(jvm.pid))
            self.assertEqual(done.returncode, 0, done)
            one = found[jvm.pid]
            self.assertEqual((one["name"], one["verdict"]), ("KnownShares", "ok"))
            checks = self.checks(one)
            for name in ("process", "runtime", "owner", "cgroup", "signal", "place"):
                self.assertEqual(checks[name]["verdict"], "ok", checks)
            self.assertEqual(checks["daemon"]["verdict"], "unknown")
            self.assertEqual(os.path.exists("/tmp/.java_pid%d" % jvm.pid), there)
            self.assertEqual(agent_copies(jvm.pid), 0)
            self.assertNotIn("Attach Listener", thread_names(jvm.pid))
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_events_that_it_would_not_give_are_said(self):
        archive = "/tmp/kindling-test-%d.jsa" % os.getpid()
        with Jvm(MAJOR) as all_of_them, Jvm(MAJOR, options=("-Xmx64m", "-XX:ArchiveClassesAtExit=" + archive)) as no_parks:
            for jvm, wanted in ((all_of_them, "all events .*monitors, parks, alloc"), (no_parks, "monitors, alloc.*; no parks: ")):
                found, done = self.doctor(None, str(jvm.pid))
                self.assertEqual((done.returncode, found[jvm.pid]["verdict"]), (0, "ok"))
                self.assertRegex(self.checks(found[jvm.pid])["events"]["finding"], wanted)

    def test_every_no_is_said_with_what_would_change_it(self):
        with variables(KINDLING_DISABLE="1"):
            said_no = Jvm(MAJOR)
        with said_no, Jvm(MAJOR, options=("-Xmx64m", "-XX:+DisableAttachMechanism")) as option, Daemon() as daemon:
            daemon.wait_state(said_no.pid, "excluded")
            daemon.wait_state(option.pid, "failed")
            found, done = self.doctor(daemon)
            self.assertEqual(done.returncode, 1)
            for jvm, word in ((said_no, "KINDLING_DISABLE"), (option, "DisableAttachMechanism")):
                checks = self.checks(found[jvm.pid])
                self.assertEqual(found[jvm.pid]["verdict"], "no")
                self.assertEqual(checks["owner"]["verdict"], "no")
                self.assertIn(word, checks["owner"]["finding"])
                self.assertIn("start the JVM without", checks["owner"]["change"])
                self.assertIn(word, checks["daemon"]["finding"])
                self.assertEqual(checks["signal"]["verdict"], "ok")
            out = daemon.cli("doctor", str(option.pid), check=False).stdout
            self.assertRegex(out, r"^%d KnownShares: cannot be profiled at present\n  ok       process " % option.pid)
            self.assertRegex(out, r"\n  no       owner    .*. What to do: start the JVM without")

    def test_facts_that_need_root_are_unknown_to_others(self):
        with Jvm(MAJOR) as jvm:
            found, done = self.doctor(None, str(jvm.pid), user=65534, group=65534, extra_groups=[])
            self.assertEqual(done.returncode, 1)
            checks = self.checks(found[jvm.pid])
            self.assertEqual(found[jvm.pid]["verdict"], "unknown")
            for name in ("access", "runtime", "jdk", "owner", "profilers", "place"):
                self.assertEqual((checks[name]["verdict"], checks[name]["change"]), ("unknown", "run this command as root"))
            self.assertEqual(checks["signal"]["verdict"], "ok")

    def test_a_process_that_is_no_jvm_is_named_so(self):
        found, done = self.doctor(None, str(os.getpid()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a JVM", self.checks(found[os.getpid()])["runtime"]["finding"])
        found, done = self.doctor(None, "999999999")
        self.assertEqual(found[999999999]["verdict"], "no")
        found, done = self.doctor(None, "0")
        self.assertEqual((done.returncode, found), (1, {}))
        self.assertIn("no JVM on this host is called 0", done.stderr)
        out = subprocess.run([BUILD + "/bin/kindling", "--socket", "/nowhere", "doctor", str(os.getpid())],
                             capture_output=True, text=True, timeout=60).stdout
        self.assertTrue(out.startswith("%d: cannot be profiled at present\n" % os.getpid()), out)

    def test_a_process_that_the_kernel_hides_from_the_daemon(self):
        with Daemon(wrap=("setpriv", "--bounding-set", "-sys_ptrace")) as daemon, Jvm(MAJOR) as jvm:
            wait_for("the refusal", lambda: jvm.pid in daemon.status()["discovery"]["denied"]["pids"])
            self.assertRegex(" ".join(daemon.cli("status").stdout.split()), r"\d+ process(es)? called java cannot be inspected")
            found, _ = self.doctor(daemon, str(jvm.pid))
            check = self.checks(found[jvm.pid])["daemon"]
            self.assertEqual(check["verdict"], "no")
            self.assertIn("does not let kindlingd read the memory map", check["finding"])

    def test_an_agent_that_can_collect_nothing_says_why(self):
        """A JVM that inherits four ignored signals has none that is free for samples."""
        signals = [signal.SIGPROF, signal.SIGVTALRM, signal.SIGPWR, 16]  # 16: SIGSTKFLT, which Python does not name
        before = [signal.signal(s, signal.SIG_IGN) for s in signals]
        try:
            jvm = Jvm(MAJOR)
        finally:
            for s, handler in zip(signals, before):
                signal.signal(s, handler)
        with jvm, Daemon(targets()) as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            reason = "so that no signal is free"
            wait_for("the reason", lambda: reason in (daemon.target(jvm.pid)["reason"] or ""))
            wait_for("nothing", lambda: daemon.target(jvm.pid)["events"] == [])
            said = daemon.cli("status").stdout
            self.assertIn(reason, " ".join(said.split()))
            self.assertRegex(said, r"\n0 of \d+ JVMs? streaming")
            checks = self.checks(self.doctor(daemon, str(jvm.pid))[0][jvm.pid])
            self.assertEqual(checks["daemon"]["verdict"], "no")
            self.assertIn("then run kindling detach", checks["daemon"]["change"])
            self.assertNotIn("offcpu", checks)
            self.assertRegex(daemon.cli("metrics").stdout, r"\nkindling_targets_faulty 1\n")
            recorded = daemon.cli("record", str(jvm.pid), "-d", "1s", "-o", os.path.join(daemon.dir, "none.collapsed"))
            self.assertIn(reason, recorded.stderr)
            self.assertIn(": 0 samples", recorded.stderr)

    def test_the_daemons_words(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            found, done = self.doctor(daemon, str(jvm.pid))
            self.assertEqual((done.returncode, found[jvm.pid]["verdict"]), (0, "ok"))
            daemon.cli("detach", str(jvm.pid))
            found, done = self.doctor(daemon, str(jvm.pid))
            checks = self.checks(found[jvm.pid])
            self.assertEqual((checks["daemon"]["verdict"], checks["daemon"]["change"]), ("no", "kindling attach PID"))
            self.assertIn("detached by uid 0", checks["daemon"]["finding"])
            found, done = self.doctor(daemon, str(jvm.pid), user=65534, group=65534, extra_groups=[])
            checks = self.checks(found[jvm.pid])
            self.assertRegex(checks["daemon"]["finding"], "^permission denied: .*" + daemon.socket)
            self.assertIn("sudo", checks["daemon"]["change"])  # not "start it"


class Limits(unittest.TestCase):
    def test_no_second_sees_more_attaches_than_the_rate(self):
        jvms = [Jvm(MAJOR, "Idle", options=("-Xmx16m",)) for _ in range(6)]
        try:
            with Daemon(targets(settings="  attach_rate: 2\n")) as daemon:
                for jvm in jvms:
                    daemon.wait_state(jvm.pid, "streaming")
                self.assertEqual(len(re.findall("to=injecting", daemon.read_log())), 6)
                self.assertGreater(daemon.status()["uptime_s"], 1.9)  # two at 0, 1 and 2 s
                ended = [jvms[i].pid for i in (0, 3, 1, 5, 2, 4)]
                for i in (0, 3, 1, 5, 2, 4):
                    jvms[i].end()
                    daemon.wait_state(jvms[i].pid, "gone")
                # the latest first, and none is missing
                self.assertEqual([t["pid"] for t in daemon.status()["targets"] if t["pid"] in ended], ended[::-1])
        finally:
            for jvm in jvms:
                jvm.__exit__()

    def test_the_one_with_the_most_cpu_is_taken(self):
        with Jvm(MAJOR, "Idle") as idle:
            with Daemon(targets(settings="  max: 1\n")) as daemon:
                daemon.wait_state(idle.pid, "streaming")
                with Jvm(MAJOR) as busy:
                    # it waits at first; on a busy machine it may have been attached to before we look
                    wait_for("it was kept out", lambda: re.search(
                        'pid=%d from=found to=excluded .*targets.max' % busy.pid, daemon.read_log()))
                    daemon.wait_state(busy.pid, "streaming")
                    self.assertIn("targets.max", daemon.wait_state(idle.pid, "excluded")["reason"])
                    untouched(self, idle.pid)
                daemon.wait_state(idle.pid, "streaming")


class Crashes(unittest.TestCase):
    def crash(self, settings=""):
        """Two JVMs of the same kind, one of which crashes, and one of another kind."""
        with tempfile.TemporaryDirectory() as cwd, Daemon(settings + targets()) as daemon, Jvm(MAJOR) as twin, \
                Jvm(MAJOR, "Idle") as other:
            options = ("-Xmx64m", "-XX:ErrorFile=%s/hs_err_pid%%p.log" % cwd)
            with Jvm(MAJOR, options=options) as jvm:
                for x in (jvm, twin, other):
                    daemon.wait_state(x.pid, "streaming")
                os.kill(jvm.pid, signal.SIGSEGV)
                daemon.wait_state(jvm.pid, "gone")
                jvm.process.communicate()
            t = daemon.wait_state(twin.pid, "excluded")
            self.assertRegex(t["reason"], "^left alone until .*Z, for process %d died of SIGABRT" % jvm.pid)
            untouched(self, twin.pid)
            self.assertEqual(daemon.target(other.pid)["state"], "streaming")
            blocked = daemon.status()["blocked"]
            self.assertEqual(len(blocked), 1)
            self.assertIn("KnownShares", blocked[0]["cohort"])
            self.assertRegex(daemon.cli("status").stdout, "Not profiled until .*KnownShares with .*libjvm.so of [0-9]+ bytes of 20")
            metrics = subprocess.run(["curl", "-s", "--unix-socket", daemon.socket, "http://x/metrics"], capture_output=True,
                                     text=True).stdout
            self.assertIn("kindling_crashes_total 1\n", metrics)
            self.assertIn("kindling_cohorts_blocked 1\n", metrics)
            daemon.cli("attach", str(twin.pid))  # an attach that a user requests is allowed all the same
            self.assertTrue(twin.alive() and other.alive())

    def test_a_crash_keeps_us_from_those_like_it(self):
        self.crash()

    def test_without_bpf_the_file_of_hotspot_tells(self):
        with tempfile.TemporaryDirectory() as cwd:
            before = os.getcwd()
            os.chdir(cwd)
            try:
                jvm = Jvm(MAJOR, options=("-Xmx64m", "-XX:-CreateCoredumpOnCrash") if MAJOR != "8" else ("-Xmx64m",))
            finally:
                os.chdir(before)
            with jvm, Daemon("discovery:\n  bpf: off\n" + targets()) as daemon:
                daemon.wait_state(jvm.pid, "streaming")
                os.kill(jvm.pid, signal.SIGSEGV)
                daemon.wait_state(jvm.pid, "gone")
                self.assertRegex(daemon.status()["blocked"][0]["reason"], "wrote hs_err")

    def test_a_kill_is_no_crash(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            os.kill(jvm.pid, signal.SIGKILL)
            self.assertIn("SIGKILL", wait_for("how it ended", lambda: daemon.wait_state(jvm.pid, "gone")["reason"]))
            self.assertEqual(daemon.status()["blocked"], [])


class Versions(unittest.TestCase):
    def leave_agent(self, jvm, tmp, version):
        """What a killed daemon of @version leaves: an agent, and pipes whose other ends are closed, except the
        reader's end of events, which is returned."""
        wait_seen_by_all(jvm.pid)
        directory = tmp + "/kindling/" + version
        library, events, control = (directory + name for name in ("/libkindling-0.so", "/events-0", "/control-0"))
        os.makedirs(directory, exist_ok=True)
        lock = os.open(directory, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)  # locked like a placement, because daemons of other tests remove files that nobody has locked
        try:
            shutil.copy(BUILD + "/lib/libkindling.so", library)
            os.chmod(library, 0o555)
            os.mkfifo(events, 0o600)
            os.mkfifo(control, 0o600)
            reader = os.open(events, os.O_RDONLY | os.O_NONBLOCK)
            subprocess.run([BUILD + "/bin/kindling-inject", str(jvm.pid), "load", library,
                            "events=%s,control=%s" % (events, control)], check=True, stdout=subprocess.DEVNULL)
            wait_for("its thread", lambda: "kindling" in thread_names(jvm.pid))
            wait_for("its pipes", lambda: {events, control} <= set(open_files(jvm.pid)))
            return reader
        finally:
            os.close(lock)
            shutil.rmtree(directory, ignore_errors=True)

    def test_an_agent_that_a_killed_older_daemon_left_is_sent_away(self):
        self.sent_away("/tmp")

    def test_also_where_tmp_lies_below_another_folder_of_that_name(self):
        with tempfile.TemporaryDirectory() as directory:
            self.sent_away(directory + "/kindling/tmp")

    def test_no_second_agent_while_another_version_reads(self):
        """A receiver may outlive its daemon, and two versions of kindlingd may run on a host by mistake."""
        with Jvm(MAJOR) as jvm, starts:
            reader = self.leave_agent(jvm, "/tmp", "0.0.9")
            with Daemon() as daemon:
                self.assertEqual(daemon.wait_state(jvm.pid, "failed")["reason"], "another kindlingd already profiles this JVM")
                self.assertEqual(thread_names(jvm.pid).count("kindling"), 1)
                os.close(reader)
                daemon.wait_state(jvm.pid, "streaming")
                wait_for("one agent's thread", lambda: thread_names(jvm.pid).count("kindling") == 1)
                self.assertRegex(daemon.read_log(), r"target.send_away pid=%d version=\"?0\.0\.9" % jvm.pid)

    def test_a_receiver_that_ends_a_moment_after_its_daemon_is_waited_for(self):
        with Jvm(MAJOR) as jvm, starts:
            reader = self.leave_agent(jvm, "/tmp", "0.0.9")
            with subprocess.Popen(["sleep", "0.8"], pass_fds=(reader,)):
                os.close(reader)
                with Daemon() as daemon:
                    daemon.wait_state(jvm.pid, "streaming")
                    wait_for("one agent's thread", lambda: thread_names(jvm.pid).count("kindling") == 1)

    def test_the_log_names_an_agent_that_was_detached(self):
        """Two daemons on one machine: the one that may not profile a JVM detaches the agent that the other one left
        in it when it died."""
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            version = daemon.status()["version"]
            daemon.kill()
            wait_for("no reader", lambda: timers(jvm.pid) == 0)
            with Daemon("targets: {mode: opt-in}\n") as other:
                wait_for("its thread to end", lambda: "kindling" not in thread_names(jvm.pid))
                other.wait_state(jvm.pid, "excluded")
                self.assertRegex(other.read_log(), r'target.send_away pid=%d version="?%s' % (jvm.pid, re.escape(version)))
            daemon.start()
            self.assertEqual(daemon.wait_state(jvm.pid, "streaming")["attempts"], 1)

    def sent_away(self, tmp):
        with Jvm(MAJOR) as jvm, starts:  # another test's daemon would detach it
            os.close(self.leave_agent(jvm, tmp, "0.0.9"))
            with Daemon() as daemon:
                daemon.wait_state(jvm.pid, "streaming")
                wait_for("one agent's thread", lambda: thread_names(jvm.pid).count("kindling") == 1)
                wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
                self.assertRegex(daemon.read_log(), r"target.send_away pid=%d version=\"?0\.0\.9" % jvm.pid)
                self.assertFalse([f for f in open_files(jvm.pid) if "/0.0.9/" in f])
                daemon.cli("detach", str(jvm.pid))
                untouched(self, jvm.pid)
            self.assertEqual(jvm.end(), ("END\n", ""))


class Paused(unittest.TestCase):
    def test_a_jvm_that_is_stopped_is_said_to_be(self):
        def is_noted():
            return "paused" in [note["step"] for note in daemon.target(jvm.pid)["notes"]]
        with Daemon("events: { cpu: {}, offcpu: {} }\n") as daemon, Jvm(MAJOR) as jvm:
            why = daemon.status()["offcpu"].get("why")
            if why:
                self.skipTest("no times off the CPU: " + why)
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(3)
            self.assertFalse(is_noted())
            os.kill(jvm.pid, signal.SIGSTOP)
            wait_for("the note", is_noted)
            self.assertRegex(daemon.cli("status").stdout, r"paused: all its threads have been halted for \d+ s, by SIGSTOP")
            os.kill(jvm.pid, signal.SIGCONT)
            wait_for("its end", lambda: not is_noted())


class Untimed(unittest.TestCase):
    def test_threads_without_timers_are_said_to_be(self):
        """Of a user who has no other processes, whose signals would count, too."""
        soft, hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (10, hard))  # the agent uses half of it
        try:
            jvm = Jvm(MAJOR, uid=47110)
        finally:
            resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft, hard))
        with jvm, Daemon("events: { cpu: { host_engine: false } }\n") as daemon:
            wait_for("the note", lambda: "threads" in [note["step"] for note in (daemon.target(jvm.pid) or {}).get("notes", [])])
            self.assertRegex(daemon.cli("status").stdout, r"threads: \d+ threads have no CPU samples: they got no timer")


class Ends(unittest.TestCase):
    def tail(self, daemon, *args):
        return subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def test_tail_ends_with_its_jvm(self):
        with Daemon() as daemon, Jvm(MAJOR) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            tail = self.tail(daemon, str(jvm.pid))
            tail.stdout.readline()
            jvm.end()
            _, err = tail.communicate(timeout=20)
            self.assertEqual(tail.returncode, 0, err)
            self.assertIn("process %d (KnownShares) has ended" % jvm.pid, err)
            again = self.tail(daemon, "--json", str(jvm.pid))
            out, _ = again.communicate(timeout=20)
            self.assertEqual(again.returncode, 0)
            self.assertEqual(json.loads(out)["left"], 0)

    def test_tail_of_two_goes_on_with_the_other(self):
        with Daemon() as daemon, Jvm(MAJOR) as one, Jvm(MAJOR) as two:
            for jvm in (one, two):
                daemon.wait_state(jvm.pid, "streaming")
            tail = self.tail(daemon, "--json", str(one.pid), str(two.pid))
            tail.stdout.readline()
            one.end()
            events = [json.loads(line) for line in iter(lambda: self.until_end(tail), None)]
            self.assertEqual((events[-1]["pid"], events[-1]["left"]), (one.pid, 1))
            self.assertEqual(json.loads(tail.stdout.readline())["pid"], two.pid)
            two.end()
            self.assertIn('"left":0', tail.communicate(timeout=20)[0])
            self.assertEqual(tail.returncode, 0)

    ended = False

    def until_end(self, tail):
        if self.ended:
            return None
        line = tail.stdout.readline()
        self.ended = '"event":"end"' in line
        return line


class Crowded(Jvm):
    """A JVM of uid 1234 in a sticky /tmp of its own, in which uid 4000 was first to make /tmp/kindling."""
    # the build may be in /tmp, which this namespace replaces
    COMMAND = """mount --bind "$0" /mnt
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir /tmp/kindling
echo theirs > /tmp/kindling/theirs
chown -R 4000:4000 /tmp/kindling
cd /
exec setpriv --reuid 1234 --regid 1234 --clear-groups "$@" """

    def __init__(self):
        home, path = (p.replace(BUILD, "/mnt") for p in (java_home_for_all(MAJOR), classes()))
        self.process = subprocess.Popen(["unshare", "-m", "sh", "-ec", self.COMMAND, BUILD, home + "/bin/java", "-Xmx64m", "-cp", path, "KnownShares"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "READY\n":
            raise AssertionError(self.process.communicate())

    def tmp(self):
        """The content of its /tmp with owner and mode, without the JVM's own files."""
        top, found = "/proc/%d/root/tmp" % self.pid, {}
        for base, dirs, files in os.walk(top):
            dirs[:] = [d for d in dirs if not d.startswith("hsperfdata")]
            for name in dirs + files:
                if not name.startswith(".java_pid"):
                    s = os.lstat(os.path.join(base, name))
                    found[os.path.join(base, name)[len(top):]] = (oct(s.st_mode), s.st_uid, s.st_gid)
        return found


class TmpOfMany(unittest.TestCase):
    def test_a_stranger_who_makes_our_directory_keeps_nobody_out(self):
        with Daemon() as daemon, Crowded() as jvm:
            theirs = {"/kindling": ("0o40755", 4000, 4000), "/kindling/theirs": ("0o100644", 4000, 4000)}
            self.assertIn("can be placed in the JVM's /tmp", daemon.cli("doctor", str(jvm.pid), check=False).stdout)
            for attach in (1, 2):
                daemon.wait_state(jvm.pid, "streaming")
                wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 10)
                self.assertEqual(jvm.tmp(), theirs)
                if attach == 1:  # the pipes are found again by their paths
                    daemon.kill()
                    daemon.start()
                    daemon.wait_state(jvm.pid, "streaming")
                    self.assertEqual(daemon.target(jvm.pid)["attempts"], 0)
                daemon.cli("detach", str(jvm.pid))
                daemon.wait_state(jvm.pid, "detached")
                untouched(self, jvm.pid)
                self.assertEqual(jvm.tmp(), theirs)
                if attach == 1:
                    daemon.cli("attach", str(jvm.pid))
            self.assertEqual(agent_copies(jvm.pid), 1)  # it was loaded from another file with the same path
            self.assertEqual(jvm.end(), ("END\n", ""))


class OtherProfilers(unittest.TestCase):
    """async-profiler in the JVM, loaded before us or after us, with the settings share and yield."""

    def setUp(self):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
        import stacks
        self.library = stacks.rival()
        if not self.library:
            self.skipTest("async-profiler cannot be had")
        self.out = tempfile.mktemp(prefix="kindling-rival-")
        self.words = "start,loglevel=none,event=ctimer,interval=10ms,cstack=vm,collapsed,file=" + self.out
        self.option = "-agentpath:%s=%s" % (self.library, self.words)

    def tearDown(self):
        if os.path.exists(self.out):
            os.unlink(self.out)

    def inject(self, *words):
        return subprocess.run([BUILD + "/bin/kindling-inject", *words], capture_output=True, text=True, timeout=60)

    def test_share_samples_beside_it_and_says_so(self):
        with Jvm(MAJOR, options=("-Xmx128m", self.option)) as jvm, Daemon() as daemon:
            daemon.wait_state(jvm.pid, "streaming")
            t = wait_for("samples", lambda: (lambda t: t if t["samples"]["delivered"] > 150 else None)(daemon.target(jvm.pid)))
            self.assertEqual(t["profilers"], ["async-profiler"])
            self.assertIn("other agents in this JVM: async-profiler", daemon.cli("status").stdout)
            self.assertRegex(daemon.cli("doctor", str(jvm.pid), check=False).stdout, "ok +profilers +async-profiler is loaded in the JVM too")
            daemon.cli("detach", str(jvm.pid))
            jvm.end()
            with open(self.out) as f:
                theirs = sum(int(line.rsplit(" ", 1)[1]) for line in f)
            self.assertGreater(theirs, 100)

    def test_yield_leaves_it_alone_but_not_when_asked_by_hand(self):
        with Jvm(MAJOR, options=("-Xmx128m", self.option)) as jvm, Daemon(targets(settings="  foreign_profilers: yield\n")) as daemon:
            t = daemon.wait_state(jvm.pid, "excluded")
            self.assertEqual((t["reason_step"], t["profilers"]), ("profiler", ["async-profiler"]))
            self.assertIn("async-profiler", t["reason"])
            self.assertEqual(agent_copies(jvm.pid), 0)
            daemon.cli("attach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "streaming")

    def test_yield_leaves_when_one_comes(self):
        settings = "discovery:\n  scan_interval: 1s\n" + targets(settings="  foreign_profilers: yield\n")
        with Jvm(MAJOR) as jvm, Daemon(settings) as daemon:
            self.assertEqual(daemon.wait_state(jvm.pid, "streaming")["profilers"], [])
            self.assertEqual(self.inject(str(jvm.pid), "load", self.library, self.words).returncode, 0)
            t = daemon.wait_state(jvm.pid, "excluded")
            self.assertEqual(t["reason_step"], "profiler")
            wait_for("the end of our thread", lambda: "kindling" not in thread_names(jvm.pid))
            self.assertEqual(self.inject(str(jvm.pid), "load", self.library, "stop,file=" + self.out).returncode, 0)
            self.assertTrue(jvm.alive())


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
        java_home(MAJOR)
    unittest.main(verbosity=2)
