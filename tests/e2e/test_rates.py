"""Intervals below the kernel's tick, by the host engine: test_rates.py MAJOR. Needs root and a kernel that allows
BPF; elsewhere only the tests of the refusal run."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import (BUILD, Daemon, Jvm, agent_copies, accounts_balance, timers, wait_for)  # noqa: E402
from test_jvm import METHODS, shares_by_thread  # noqa: E402

MAJOR = "17"
CLOCK_MONOTONIC_COARSE = 6  # it counts the kernel's ticks
TICK_NS = int(time.clock_getres(CLOCK_MONOTONIC_COARSE) * 1e9)


def settings(interval, *more, max_cpu="100%"):
    return "\n".join(("events:", "  cpu:", "    interval: " + interval, "    max_cpu: " + max_cpu) + more) + "\n"


# A JVM that becomes another program when it reads "exec" (by the foreign functions of JDK 22 and later)
BECOMES = """
import java.lang.foreign.*;
import java.lang.invoke.MethodHandle;

public class Becomes {
    static volatile long sink;

    public static void main(String[] args) throws Throwable {
        for (int i = 0; i < 3; i++) {
            Thread t = new Thread(() -> { while (true) sink++; });
            t.setDaemon(true);
            t.start();
        }
        Linker linker = Linker.nativeLinker();
        MethodHandle execv = linker.downcallHandle(linker.defaultLookup().find("execv").get(),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
        Arena arena = Arena.global();
        String[] words = { "/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo SURVIVED" };
        MemorySegment argv = arena.allocate(ValueLayout.ADDRESS, words.length + 1);
        for (int i = 0; i < words.length; i++)
            argv.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(words[i]));
        System.out.println("READY");
        System.in.read();
        int r = (int) execv.invoke(arena.allocateFrom(words[0]), argv);
        System.out.println("execv: " + r);
    }
}
"""


CALLS_CPU_NS = 10 ** 9  # CPU time of each thread that shares within some points need
CALLS_ROUNDS = 12
CALLED = r"(do_syscall_64|el0_svc)_\[k\]"  # called by a system call and not by an interrupt, of which a busy machine has more


class Window:
    """The counts of one JVM over some seconds."""

    def __init__(self, daemon, jvm, seconds):
        self.start = self.look(daemon, jvm)
        time.sleep(seconds)
        self.end = self.look(daemon, jvm)

    @staticmethod
    def look(daemon, jvm):
        """Counts from one LEDGER, so all are from the same moment; without samples that threads account for when they
        end, which no signal causes."""
        target = daemon.target(jvm.pid)
        agent, at_end = target["agent"], target["samples"]["exited_between_ticks"]
        own_ns = agent["cpu_ns"] - agent["handler_ns"]  # of the agent's own thread, which is not sampled
        return {"cpu_ns": agent["process_cpu_ns"] - own_ns, "samples": agent["taken"] - at_end, "taken_ns": agent["taken_ns"]}

    def __getitem__(self, key):
        return self.end[key] - self.start[key]

    def rate(self):
        return self["samples"] / (self["cpu_ns"] / 1e9)

    def ratio(self):
        return self["taken_ns"] / self["cpu_ns"]


class Case(unittest.TestCase):
    def skip_if_refused(self, daemon):
        engine = daemon.status()["host_engine"]
        if engine["state"] == "refused":
            (self.fail if os.environ.get("CI") else self.skipTest)(engine["why"])

    def hosted(self, daemon, jvm):
        daemon.wait_state(jvm.pid, "streaming")
        wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
        self.skip_if_refused(daemon)
        return wait_for("the host engine", lambda: daemon.target(jvm.pid)["engine"] == "host" and
                        daemon.status()["host_engine"]["sent"] > 0 and daemon.target(jvm.pid))


class Rates(Case):
    """What is measured."""

    def check(self, interval, interval_ns):
        with Daemon(settings(interval)) as daemon, Jvm(MAJOR, full=True) as jvm:
            target = self.hosted(daemon, jvm)
            self.assertEqual(target["interval_ns"], interval_ns)
            self.assertEqual(timers(jvm.pid), 0)
            time.sleep(3)  # warm-up
            window = Window(daemon, jvm, 5)
            text = daemon.cli("report", str(jvm.pid), "--format", "txt", "-o", "-").stdout
            self.assertNotIn("timers", text.split("\n\n")[0])
            accounts = accounts_balance(daemon.target(jvm.pid))
            engine = daemon.status()["host_engine"]
            self.assertEqual((engine["state"], engine["interval_ns"]), ("on", interval_ns))
            self.assertRegex(daemon.cli("status").stdout, r"CPU samples: each CPU has a tick every \S+ ms")
            agent = daemon.target(jvm.pid)["agent"]
            print("JDK %s, %s: %.0f samples a CPU second of %.0f, weights / CPU time = %.4f, agent %.2f %%, handler "
                  "%.1f us, dropped %s, sent %d held %d foreign %d failed %d" % (
                      MAJOR, interval, window.rate(), 1e9 / interval_ns, window.ratio(), 100 * agent["cpu_share"],
                      agent["handler_ns"] / accounts["taken"] / 1e3, {k: v for k, v in accounts["dropped"].items() if v},
                      engine["sent"], engine["held"], engine["foreign"], engine["failed"]))
            self.assertAlmostEqual(window.ratio(), 1, delta=0.03)
            # a loaded host, or a hypervisor, takes ticks away, but none are invented
            self.assertGreater(window.rate(), 0.6e9 / interval_ns)
            self.assertLess(window.rate(), 1.25e9 / interval_ns)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_every_millisecond(self):
        self.check("1ms", 1000000)

    def test_every_200_microseconds(self):
        self.check("200us", 200000)

    def test_the_host_follows_an_interval_that_the_budget_makes_longer(self):
        with Daemon(settings("200us", max_cpu="0.5%")) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hosted(daemon, jvm)
            wait_for("a longer interval", lambda: daemon.target(jvm.pid)["interval_ns"] > 400000, 60)
            wait_for("the host engine to follow", lambda: daemon.status()["host_engine"]["interval_ns"] > 400000)
            before = daemon.target(jvm.pid)["interval_ns"]
            window = Window(daemon, jvm, 3)
            after = daemon.target(jvm.pid)["interval_ns"]
            print("JDK %s: every %.0f to %.0f us, %.0f samples a CPU second, weights / CPU time = %.4f" % (
                MAJOR, before / 1e3, after / 1e3, window.rate(), window.ratio()))
            self.assertEqual(daemon.target(jvm.pid)["engine"], "host")
            self.assertLess(window.rate(), 1.25e9 / min(before, after))
            self.assertGreater(window.rate(), 0.6e9 / max(before, after))
            self.assertAlmostEqual(window.ratio(), 1, delta=0.03)
            self.said_and_not_recorded(daemon, jvm)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def said_and_not_recorded(self, daemon, jvm):
        """status reports a longer interval, and a recording uses the interval of the settings."""
        target = daemon.target(jvm.pid)
        self.assertEqual(target["interval_asked_ns"], 200000)
        self.assertRegex(" ".join(n["what"] for n in target["notes"] if n["step"] == "interval"),
                         r"a sample every \S+ ms of CPU time instead of every 0.2 ms, .* max_cpu is 0.5 %")
        with subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "record", str(jvm.pid), "-d", "60s", "-o",
                               daemon.dir + "/r.txt"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recording:
            wait_for("the configured interval", lambda: daemon.target(jvm.pid)["interval_ns"] == 200000)
            self.assertEqual([n for n in daemon.target(jvm.pid)["notes"] if n["step"] == "interval"], [])
            recording.send_signal(signal.SIGINT)

    def test_a_recording_has_an_interval_of_its_own_and_after_the_jvm_nothing_ticks(self):
        with Daemon() as daemon, Jvm(MAJOR, full=True) as jvm:
            usual = self.hosted(daemon, jvm)["interval_ns"]
            # 10 ms, or 500 times what a tick costs here, in whole ms
            cost_ns = daemon.status()["host_engine"]["tick_cost_ns"]
            self.assertEqual(usual, max(10000000, -(-500 * cost_ns // 1000000) * 1000000), cost_ns)
            time.sleep(3)  # warm-up
            out = daemon.dir + "/out.collapsed"
            before, taken = jvm.mark(), daemon.target(jvm.pid)["samples"]["taken"]
            daemon.cli("record", str(jvm.pid), "-d", "6s", "-i", "1ms", "--threads", "-o", out)
            after, taken = jvm.mark(), daemon.target(jvm.pid)["samples"]["taken"] - taken
            with open(out) as f:
                got = shares_by_thread(f.read())
            truth = {g: after[g] - before[g] for g in METHODS}
            self.assertGreater(taken, 0.4 * sum(truth.values()) / 1e6)
            for group in METHODS:
                share = 100 * got[group] / sum(got.values())
                true_share = 100 * truth[group] / sum(truth.values())
                print("  %-10s %6.2f %% of samples, %6.2f %% of CPU" % (group, share, true_share))
                self.assertAlmostEqual(share, true_share, delta=2, msg=group)
            wait_for("the interval of before", lambda: daemon.target(jvm.pid)["interval_ns"] == usual)
            taken = daemon.target(jvm.pid)["samples"]["taken"]
            wait_for("another ledger", lambda: daemon.target(jvm.pid)["samples"]["taken"] > taken)
            window = Window(daemon, jvm, 4)
            self.assertLess(window.rate(), 200)
            self.assertEqual(timers(jvm.pid), 0)
            accounts_balance(daemon.target(jvm.pid))
            self.assertEqual(jvm.end(), ("END\n", ""))
            wait_for("no clocks", lambda: daemon.status()["host_engine"]["state"] == "idle")
            engine = daemon.status()["host_engine"]
            self.assertEqual(engine["targets"], 0)
            time.sleep(0.5)
            self.assertEqual(daemon.status()["host_engine"]["ticks"], engine["ticks"])  # nothing ticks for nobody

    def mixed(self, daemon, jvm, seconds):
        """{thread: (samples, {run: its share of the samples less its share of the CPU time, in points})}"""
        out = daemon.dir + "/out.collapsed"
        before, taken = jvm.mark(), daemon.target(jvm.pid)["samples"]["taken"]
        daemon.cli("record", str(jvm.pid), "-d", "%ds" % seconds, "--threads", "-o", out)
        after, taken = jvm.mark(), daemon.target(jvm.pid)["samples"]["taken"] - taken
        truth = {k: after[k] - before[k] for k in after}
        got = dict.fromkeys(truth, 0)
        with open(out) as f:
            for line in f:
                thread = re.search("periodic|random", line.split(";")[0])
                run = re.search(r"MixedRuns\.(run\w+)", line)
                if thread and run:
                    got[thread.group(0) + "/" + run.group(1)] += int(line.rsplit(" ", 1)[1])
        off = {}
        for thread in ("periodic", "random"):
            true_sum = sum(v for k, v in truth.items() if k.startswith(thread))
            got_sum = sum(v for k, v in got.items() if k.startswith(thread))
            n = taken * got_sum / sum(got.values())
            off[thread] = n, {k.split("/")[1]: 100 * (got[k] / got_sum - truth[k] / true_sum) for k in truth
                              if k.startswith(thread)}
            print("JDK %s, %s: %.0f samples, weights / CPU time = %.3f, %s" % (
                MAJOR, thread, n, got_sum / true_sum,
                " ".join("%s %.1f %+.1f" % (k, 100 * truth[thread + "/" + k] / true_sum, v)
                         for k, v in off[thread][1].items())))
        return off

    def test_by_default_short_and_long_runs_of_a_thread_have_their_shares(self):
        with Daemon() as daemon, Jvm(MAJOR, "MixedRuns") as jvm:
            self.hosted(daemon, jvm)
            time.sleep(2)  # warm-up
            threads = self.mixed(daemon, jvm, 20).values()
            for n, off in threads:
                # the share of a fifth in n samples has a standard deviation of 40 / sqrt(n) points
                for points in off.values():
                    self.assertLess(abs(points), 4.5 * 40 / n ** 0.5 + 0.3)
            # a share of a half has one of 50; with timers the short runs have 4 to 12 points too little
            short = sum(off["run200us"] + off["run500us"] for _, off in threads) / 2
            self.assertLess(abs(short), 3.5 * 50 / sum(n for n, _ in threads) ** 0.5 + 0.3)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def exited_under_what_they_ran(self, stacks):
        """Most threads of 3 ms that no tick met are attributed to the usual root frames of threads with their name."""
        of = {}
        for line in stacks.splitlines():
            stack, weight = line.rsplit(" ", 1)
            if stack.endswith("[exited between ticks]"):
                of[stack] = of.get(stack, 0) + int(weight)
        known = sum(w for s, w in of.items() if re.search(r"java\.lang\.Thread\.run;.*KnownShares", s))
        print("JDK %s: exited between ticks: %s" % (MAJOR, of))
        self.assertGreater(known, 0.5 * sum(of.values()))

    def refused(self, daemon, state, why):
        with Jvm(MAJOR, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            time.sleep(2)  # warm-up
            window = Window(daemon, jvm, 5)
            target = daemon.target(jvm.pid)
            accounts_balance(target)
            engine = daemon.status()["host_engine"]
            print("JDK %s: %s, %s: %.0f samples a CPU second, every %.1f ms, weights / CPU time = %.4f" % (
                MAJOR, engine["state"], engine["why"], window.rate(), target["interval_ns"] / 1e6, window.ratio()))
            self.assertEqual(engine["state"], state)
            self.assertRegex(engine["why"], why)
            self.assertRegex(engine["note"], "CPU timers")
            self.assertEqual(target["engine_note"], engine["note"])
            said = " ".join(daemon.cli("status").stdout.split())
            self.assertIn("sampled by CPU timers", said)
            text = daemon.cli("report", str(jvm.pid), "--format", "txt", "-o", "-").stdout
            self.assertIn("sampled by CPU timers", " ".join(text.split()))
            stacks = daemon.cli("report", str(jvm.pid), "--format", "collapsed", "-o", "-").stdout
            self.exited_under_what_they_ran(stacks)
            self.assertEqual(target["engine"], "cpu-timer")
            self.assertEqual(target["interval_ns"], TICK_NS)
            self.assertAlmostEqual(window.ratio(), 1, delta=0.03)
            self.assertLess(window.rate(), 1.3e9 / TICK_NS)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_switched_off_the_interval_is_the_ticks(self):
        with Daemon(settings("1ms", "    host_engine: false")) as daemon:
            self.refused(daemon, "off", "host_engine is false")

    def test_without_capabilities_the_interval_is_the_ticks(self):
        with Daemon(settings("1ms"), wrap=("setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon")) as daemon:
            self.refused(daemon, "refused", "permission denied")

    def recorded(self, daemon, jvm):
        """Stacks by thread and the program's own clocks, from as many recordings as the threads need for their CPU
        time."""
        stacks = {n: {} for n in ("small", "large", "mixed", "spin")}
        out = daemon.dir + "/out.collapsed"
        clocks = {}
        for _ in range(CALLS_ROUNDS):
            before = jvm.mark()
            daemon.cli("record", str(jvm.pid), "-d", "5s", "-i", "1ms", "--threads", "--annotate", "-o", out)
            after = jvm.mark()
            clocks = {k: clocks.get(k, 0) + after[k] - before[k] for k in after}
            with open(out) as f:
                for line in f:
                    stack, weight = line.rsplit(" ", 1)
                    for n in stacks:
                        if n in stack.split(";")[0]:
                            stacks[n][stack] = stacks[n].get(stack, 0) + int(weight)
            if min(clocks["large"], clocks["mixed"]) > CALLS_CPU_NS:
                break
        return stacks, clocks

    def calls(self, daemon, check):
        """Runs Calls under @daemon; check(collapsed stacks by thread, true shares of kernel mode, status)."""
        with Jvm(MAJOR, "Calls") as jvm:
            self.hosted(daemon, jvm)
            wait_for("compiled code", lambda: jvm.mark()["mixed"] > CALLS_CPU_NS, 120)
            window = Window.look(daemon, jvm)
            stacks, clocks = self.recorded(daemon, jvm)
            now = Window.look(daemon, jvm)
            ratio = (now["taken_ns"] - window["taken_ns"]) / (now["cpu_ns"] - window["cpu_ns"])
            true = {n: clocks[n + "_kernel"] / clocks[n] for n in ("large", "mixed")}
            true["spin"] = 0
            check(stacks, true, ratio, daemon.status()["host_engine"])
            daemon.wait_arrived(jvm.pid)
            accounts_balance(daemon.target(jvm.pid))
            self.assertEqual(jvm.end(), ("END\n", ""))

    def check_calls(self, of_thread, method):
        """Samples in system calls have @method below the kernel's frames; most of them are in the call itself, the
        others on the way in and out."""
        called = {s: w for s, w in of_thread.items() if re.search(CALLED, s)}
        read = [w for s, w in called.items() if re.search(method + r".*;vfs_read_\[k\]", s)]
        self.assertGreater(sum(read) / sum(called.values()), 0.3, max(called, key=called.get))

    def check_kernel_frames(self, stacks, true, ratio, engine):
        if engine["kernel_stacks"]["note"]:
            self.skipTest(engine["kernel_stacks"]["note"])
        for name, of_thread in stacks.items():
            called = sum(w for s, w in of_thread.items() if re.search(CALLED, s))
            share = called / sum(of_thread.values())
            print("  %-6s %5.1f %% of samples in system calls, of its CPU time %s" % (
                name, 100 * share, "%.1f %%" % (100 * true[name]) if name in true else "?"))
            if name in true:
                self.assertAlmostEqual(share, true[name], delta=0.1, msg=name)
            # no frame of user mode is above one of the kernel
            for stack in of_thread:
                marks = [f.endswith("_[k]") for f in stack.split(";")]
                self.assertEqual(marks, sorted(marks), stack)
                self.assertNotRegex(stack, r"ffffffff[0-9a-f]{8}")
        self.check_calls(stacks["small"], r"FileInputStream\.read")
        self.check_calls(stacks["large"], r"FileChannelImpl\.read")
        print("  weights / CPU time = %.4f" % ratio)
        self.assertAlmostEqual(ratio, 1, delta=0.03)

    def kernel_accounts(self, daemon):
        """After the JVM's end every stack that was taken is accounted for, and nearly all were matched with their
        samples."""
        def closed():
            counts = daemon.status()["host_engine"]["kernel_stacks"]
            return counts["taken"] == counts["matched"] + counts["unmatched"] + counts["lost"] and counts

        counts = wait_for("closed accounts of the kernel's stacks", closed, 60)
        print("  ", counts)
        # lost: this machine did not let the daemon run for a second; unmatched: threads that ended
        self.assertGreater(counts["matched"], 0.95 * (counts["taken"] - counts["lost"]))
        self.assertGreater(counts["matched"], 0)

    def test_a_system_call_has_the_frames_of_the_kernel(self):
        with Daemon(settings("1ms", "    kernel: true")) as daemon:
            self.calls(daemon, self.check_kernel_frames)
            self.kernel_accounts(daemon)

    def test_without_the_right_to_its_addresses_the_kernel_has_no_names(self):
        def check(stacks, true, ratio, engine):
            self.assertRegex(engine["kernel_stacks"]["note"], "CAP_SYSLOG")
            self.assertIn("kernel frames: no names", daemon.cli("status").stdout)
            kernel = {f for t in stacks.values() for s in t for f in s.split(";") if f.endswith("_[k]")}
            self.assertEqual(kernel, {"[unknown]_[k]"})
            self.assertAlmostEqual(ratio, 1, delta=0.03)

        wrap = ("setpriv", "--bounding-set", "-syslog")
        shown = subprocess.run([*wrap, "head", "-1", "/proc/kallsyms"], stdout=subprocess.PIPE, text=True).stdout
        if not shown.startswith("0000000000000000"):
            self.skipTest("this kernel shows its addresses to everybody")
        with Daemon(settings("1ms", "    kernel: true"), wrap=wrap) as daemon:
            self.calls(daemon, check)

    def test_frames_of_the_kernel_can_be_switched_off(self):
        def check(stacks, true, ratio, engine):
            self.assertNotIn("kernel_stacks", engine)
            self.assertFalse([s for t in stacks.values() for s in t if "_[k]" in s])
            self.assertAlmostEqual(ratio, 1, delta=0.03)

        with Daemon(settings("1ms", "    kernel: false")) as daemon:
            self.calls(daemon, check)


class Ends(Case):
    """Processes and programs that begin and end while signals are sent; right at any speed."""

    def test_two_capabilities_are_enough(self):
        # CAP_SYS_ADMIN includes both; only the injector would need it, and only for containers
        with Daemon(settings("1ms"), wrap=("setpriv", "--bounding-set", "-sys_admin")) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hosted(daemon, jvm)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_a_killed_daemon_does_no_harm_and_its_successor_goes_on(self):
        with Daemon(settings("200us")) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hosted(daemon, jvm)
            before = jvm.mark()["full"]
            daemon.kill()
            time.sleep(2)  # signals that are still sent would come in that time
            self.assertTrue(jvm.alive())
            self.assertGreater(jvm.mark()["full"], before)
            self.assertEqual(timers(jvm.pid), 0)
            daemon.start()
            self.hosted(daemon, jvm)
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            self.assertEqual(agent_copies(jvm.pid), 1)
            accounts_balance(daemon.target(jvm.pid))
            self.assertIn("target.reattach", daemon.read_log())
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_programs_that_the_jvm_starts_get_no_signal(self):
        with Daemon(settings("100us")) as daemon, Jvm(MAJOR, "Spawns") as jvm:
            self.hosted(daemon, jvm)
            time.sleep(8)  # any of the programs that it starts meanwhile would die of a signal
            target = daemon.target(jvm.pid)
            out, err = jvm.end()
            print("JDK %s: %d samples, %s" % (MAJOR, target["samples"]["taken"], out.strip()))
            self.assertRegex(out, r"END spawned=\d\d+ bad=0\n")
            self.assertEqual(err, "")

    @unittest.skipIf(len(sys.argv) > 1 and int(sys.argv[1]) < 22, "no foreign functions before 22")
    def test_a_jvm_that_becomes_another_program_gets_no_signal(self):
        with Daemon(settings("100us")) as daemon:
            source = daemon.dir + "/Becomes.java"
            with open(source, "w") as f:
                f.write(BECOMES)
            for _ in range(5):
                with Jvm(MAJOR, source, options=("-Xmx128m", "--enable-native-access=ALL-UNNAMED")) as jvm:
                    self.hosted(daemon, jvm)
                    sent = daemon.status()["host_engine"]["sent"]
                    wait_for("signals", lambda: daemon.status()["host_engine"]["sent"] > sent + 1000)
                    out, _ = jvm.process.communicate("x", timeout=40)
                    self.assertEqual((out, jvm.process.returncode), ("SURVIVED\n", 0))

    def test_a_clean_stop_leaves_a_jvm_that_nobody_signals(self):
        with Daemon(settings("1ms")) as daemon, Jvm(MAJOR, full=True) as jvm:
            self.hosted(daemon, jvm)
            self.assertEqual(daemon.stop(), 0)
            log = daemon.read_log()
            accounts = re.search(r"target.accounts pid=%d event=cpu taken=(\d+) delivered=(\d+) dropped=(\d+) lost=0" % jvm.pid, log)
            taken, delivered, dropped = (int(n) for n in accounts.groups())
            self.assertEqual(taken, delivered + dropped)
            time.sleep(0.5)  # a signal that came now would end the JVM
            self.assertEqual(jvm.end(), ("END\n", ""))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
        from kindling import java_home
        java_home(MAJOR)
        import test_jvm
        test_jvm.MAJOR = MAJOR
    unittest.main(verbosity=2)
