"""kindling under other kernels: each boots in QEMU with this machine's own root (tests/harness/vm.py), and in it a
daemon profiles a JVM on the host and one in a container.
    kernels.py [--only CHECK,...] [LINE...]      e.g. 5.10 6.8; without a line: all
Prints a table as in docs/compatibility.md. QEMU without KVM is slower by a factor of ten and more, so shares are
checked loosely and times not at all. Needs root, qemu-system-x86 and busybox-static."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import vm  # noqa: E402
from kindling import BUILD, Daemon, Jvm, accounts_balance, classes, java_home, skip, thread_names, timers, until_cpu, wait_for  # noqa: E402

MACHINE_S = 900
STREAMS_S = 300
SHARE_POINTS = 15  # points by which a method's share may be off
# times off the CPU are tested separately: in a slow emulation their stacks use up so much of the decoding budget that
# few CPU samples are left
SETTINGS = "events: {cpu: {max_cpu: 100%}, lock: {}}\n"
WITHOUT_RSEQ = "events: {cpu: {}, lock: {}, offcpu: {syscall_exits: true}}\n"
OFF_CPU_TOO = "events: {cpu: {}, lock: {}, offcpu: {}}\n"
APPARMOR = os.path.join(HERE, "..", "..", "deploy", "kubernetes", "apparmor")
QUOTA = "/sys/fs/cgroup/quota"
DAEMONSET = os.path.join(os.path.dirname(APPARMOR), "daemonset.yaml")
RIGHTS = os.path.join(HERE, "..", "e2e", "test_rights.py")
# features expected of kernels of this line, found by the first line that applies
OLDEST, HOST_ENGINE, OFF_CPU, VALUES, TASK_WORK = (5, 10), (5, 15), (5, 15), (6, 13), (6, 18)


def key(line):
    return tuple(int(n) for n in line.split("."))


def pod_capabilities():
    with open(DAEMONSET) as f:
        names = re.search(r"(?m)^ +add:\n((?: +- \w+\n)+)", f.read()).group(1).split()[1::2]
    return ",".join(["-all"] + ["+" + name.lower() for name in names])


# ---- inside ---------------------------------------------------------------------------------------------


class Inside:
    def __init__(self, line, only):
        self.line, self.only, self.found = key(line), only, {}

    def wanted(self, name):
        return not self.only or name in self.only

    def check(self, name, what):
        """Runs one check and prints a line with its result, or with the reason of its failure. False if it failed."""
        if not self.wanted(name):
            return True
        begin = time.monotonic()
        try:
            answer = what()
        except (AssertionError, OSError, KeyError, ValueError, subprocess.SubprocessError) as e:
            answer = "FAILED: %s" % str(e)[:3000]
        self.found[name] = answer
        print("CHECK %s (%.0f s): %s" % (name, time.monotonic() - begin, answer), flush=True)
        return not answer.startswith("FAILED")

    def engines(self, status):
        host, off = status["host_engine"], status["offcpu"]
        if self.line < HOST_ENGINE:
            assert host["state"] == "refused" and "Linux 5.15 is needed" in host["why"], host
        else:
            assert host["state"] != "refused" and host["puts_off"] == (self.line >= TASK_WORK), host
        if self.line < OFF_CPU:
            assert off["state"] == "refused" and re.search(r"Linux 6.2 is needed|needs the host engine", off["why"]), off
            return "%s; off-CPU refused" % ("CPU timers" if self.line < HOST_ENGINE else "host")
        assert off["state"] != "refused", off
        way = "task_work" if self.line >= TASK_WORK else "rseq" if self.line >= VALUES else "own_signal"
        assert off["signals_by"] == way, off
        return "host%s; off-CPU by %s" % (", put off" if host["puts_off"] else "", way)

    def shares(self, daemon, jvm):
        before = jvm.mark()
        until_cpu(jvm.pid, 25)
        after = jvm.mark()
        used = {name: after[name] - before[name] for name in after}
        out = daemon.cli("report", str(jvm.pid), "--last", "20s", "-o", "-", "--format", "collapsed").stdout
        taken, worst = {}, 0.0
        for stack, weight in (line.rsplit(" ", 1) for line in out.splitlines() if re.search(r" \d+$", line)):
            for name in ("full", "half", "tenth", "deep", "allocating"):
                if re.search(r"KnownShares\.%s(;|$)" % name, stack):
                    taken[name] = taken.get(name, 0) + float(weight)
                    break
        names = ("full", "half", "tenth", "deep", "allocating")
        for name in names:
            worst = max(worst, abs(100 * taken.get(name, 0) / sum(taken.values()) - 100 * used[name] / sum(used[n] for n in names)))
        assert worst < SHARE_POINTS, (taken, used)
        return "at most %.0f points off" % worst

    def off_cpu(self):
        with Daemon(OFF_CPU_TOO) as daemon, Jvm("17", uid=1000, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            words = ("report", "-e", "offcpu", str(jvm.pid), "--last", "1m", "-o", "-", "--format", "collapsed")
            if self.line < OFF_CPU:
                done = daemon.cli(*words, check=False)
                assert done.returncode != 0 and "off-CPU" in done.stderr, done
                return done.stderr.strip()
            wait_for("sleeps", lambda: re.search(r"KnownShares\.sleep.*sleep", daemon.cli(*words, check=False).stdout), STREAMS_S)
            counts, joins = daemon.status()["offcpu"], daemon.target(jvm.pid)["offcpu"]["joins"]
        return "sleeps are seen; %d of %d intervals signalled; %s" % (counts["signalled"], counts["intervals"], joins)

    def quota(self):
        """A JVM that computes with a fifth of a CPU."""
        if self.line < OFF_CPU:
            return "no times off the CPU"
        with open("/sys/fs/cgroup/cgroup.subtree_control", "w") as f:
            f.write("+cpu")
        os.mkdir(QUOTA)
        with open(QUOTA + "/cpu.max", "w") as f:
            f.write("20000 100000")
        with Daemon(OFF_CPU_TOO) as daemon, Jvm("17", uid=1000, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            with open(QUOTA + "/cgroup.procs", "w") as f:
                f.write(str(jvm.pid))
            time.sleep(20)
            events = daemon.tail(jvm.pid, "offcpu", 10)
            answer = json.loads(daemon.cli("threads", str(jvm.pid), "--last", "15s", "--json").stdout)
        busiest = max(answer["targets"][0]["threads"], key=lambda t: t["cpu_ns"])
        assert busiest["wall_ns"] > 0, answer["targets"][0]
        share = busiest["offcpu_ns"].get("throttled", 0) / busiest["wall_ns"]
        assert share > 0.5, busiest
        woken = [e for e in events if e["reason"] == "throttled" and any("KnownShares.sleep" in frame for frame in e["stack"])]
        assert len(woken) >= 3, "no event of a thread that wakes up without quota"
        return "the busiest thread waits for %.0f %% of its time, %.0f %% in the run queue; %d woke up without quota" % (
            100 * share, 100 * busiest["runqueue_ns"] / busiest["wall_ns"], len(woken))

    def told(self):
        """Without the setting a note says why such threads have no Java stacks."""
        with Daemon(OFF_CPU_TOO) as daemon, Jvm("17", uid=1000, full=True, env=dict(os.environ, GLIBC_TUNABLES="glibc.pthread.rseq=0")) as jvm:
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            wait_for("a note", lambda: [n for n in daemon.target(jvm.pid)["notes"] if "restartable sequences" in n["what"]], STREAMS_S)

    def old_libc(self):
        """Threads without restartable sequences, as with musl."""
        if self.line < OFF_CPU:
            return "no times off the CPU"
        with Daemon(WITHOUT_RSEQ) as daemon, Jvm("17", uid=1000, full=True, env=dict(os.environ, GLIBC_TUNABLES="glibc.pthread.rseq=0")) as jvm:
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            words = ("report", "-e", "offcpu", str(jvm.pid), "--last", "1m", "-o", "-", "--format", "collapsed")
            wait_for("sleeps", lambda: re.search(r"KnownShares\.sleep.*sleep", daemon.cli(*words, check=False).stdout), STREAMS_S)
            counts = daemon.status()["offcpu"]
        assert counts["syscall_exits"] == (self.line < TASK_WORK), counts
        if self.line < TASK_WORK:
            self.told()
        return "sleeps are seen; %d of %d intervals signalled" % (counts["signalled"], counts["intervals"])

    def profiled(self, daemon):
        with Jvm("17", uid=1000, full=True) as jvm:
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 30, STREAMS_S)
            self.check("shares", lambda: self.shares(daemon, jvm))
            wrong = [line for line in daemon.cli("doctor", str(jvm.pid), check=False).stdout.splitlines()
                     if re.match(r"  (no|unknown) ", line)]
            assert not wrong, wrong
            daemon.cli("detach", str(jvm.pid))
            accounts_balance(daemon.wait_state(jvm.pid, "detached"))
            assert timers(jvm.pid) == 0 and "kindling" not in thread_names(jvm.pid)[1:] and not os.path.exists("/tmp/kindling")
            end = jvm.end()
            assert end == ("END\n", ""), end
        return "streamed, detached, nothing left"

    def contained(self, daemon):
        from test_runc import Container
        with Container("17") as c:
            daemon.wait_state(c.pid, "streaming", STREAMS_S)
            wait_for("samples", lambda: daemon.target(c.pid)["samples"]["delivered"] > 10, STREAMS_S)
            with open(c.dir + "/out") as f:
                assert "Full thread dump" not in f.read()
        return "streamed"

    def rights(self):
        done = subprocess.run([sys.executable, RIGHTS, "17"], capture_output=True, text=True, timeout=MACHINE_S)
        assert done.returncode == 0, done.stderr[-2500:]
        return "as in docs/security.md"

    def confined(self):
        """A daemon with the capabilities and the AppArmor profile of the pod, as the container runtime sets them."""
        if not os.path.exists("/sys/kernel/security/apparmor/profiles"):
            return "no AppArmor"
        done = subprocess.run(["apparmor_parser", "--replace", "--skip-cache", APPARMOR], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        confined = ("setpriv", "--inh-caps=-all", "--bounding-set=" + pod_capabilities(), "--no-new-privs", "aa-exec", "-p", "kindlingd", "--")
        with Daemon(SETTINGS, wrap=confined) as daemon, Jvm("17", uid=1000, full=True) as jvm:
            with open("/proc/%d/attr/current" % daemon.process.pid) as f:
                assert "kindlingd (enforce)" in f.read()
            if self.line >= HOST_ENGINE:  # before, the reason is RLIMIT_MEMLOCK
                self.engines(daemon.status())
            daemon.wait_state(jvm.pid, "streaming", STREAMS_S)
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 10, STREAMS_S)
            daemon.cli("detach", str(jvm.pid))
            daemon.wait_state(jvm.pid, "detached")
        denied = set(re.findall(r'apparmor="DENIED" (operation=.*)', subprocess.run(["dmesg"], capture_output=True, text=True).stdout))
        assert not denied, sorted(denied)[:20]
        return "streamed, nothing denied"

    def too_old(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([BUILD + "/bin/kindlingd", "--socket", directory + "/socket", "--state-dir", directory + "/state"],
                                  capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and re.fullmatch(r"kindlingd: it needs Linux 5\.10 or later, and this kernel is .*\n", done.stderr), done
        return done.stderr.strip()

    def run(self):
        if self.line < OLDEST:
            self.check("refusal", self.too_old)
            return
        with Daemon(SETTINGS) as daemon:
            self.check("engines", lambda: self.engines(daemon.status()))
            if not self.check("JVM", lambda: self.profiled(daemon)):
                print(daemon.read_log()[-6000:])
            status = daemon.stop()
            self.found["end"] = "exit status %d" % status if status == 0 else "FAILED: %d" % status
        self.check("off-CPU", self.off_cpu)
        self.check("old-libc", self.old_libc)
        self.check("quota", self.quota)
        if self.wanted("container"):
            with Daemon("targets: {}\n") as daemon:
                if not self.check("container", lambda: self.contained(daemon)):
                    print(daemon.read_log()[-6000:])
        self.check("rights", self.rights)
        self.check("AppArmor", self.confined)


def inside(line, only):
    with open("/proc/sys/kernel/yama/ptrace_scope", "w") as f:
        f.write("1")
    subprocess.run([java_home("17") + "/bin/java", "-version"], capture_output=True)  # so that files read from it are cached
    judge = Inside(line, only)
    judge.run()
    print("RESULT " + json.dumps({"kernel": os.uname().release, **judge.found}), flush=True)


# ---- outside --------------------------------------------------------------------------------------------


def boot(line, only):
    """{check: result} under one kernel"""
    words = "KINDLING_BUILD=%s %s %s --inside %s %s" % (
        os.path.abspath(BUILD), sys.executable, os.path.abspath(__file__), line, ",".join(only))
    for threads in ("multi", "single"):
        out, console = vm.run(line, words, os.getcwd(), MACHINE_S, threads)
        print(re.sub(r"(?m)^RESULT .*\n", "", out), flush=True)
        found = re.search(r"^RESULT (.*)$", out, re.M)
        if found:
            break
    return json.loads(found.group(1)) if found else {"kernel": line, "machine": "FAILED: no answer\n" + console[-3000:]}


def main():
    if os.geteuid() != 0:
        skip("needs root")
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="", help="checks, by the names in the table: engines,off-CPU")
    options.add_argument("lines", nargs="*")
    a = options.parse_args()
    classes()
    failed = False
    rows = []
    for line in a.lines or vm.KERNELS:
        begin = time.monotonic()
        found = boot(line, a.only.split(","))
        rows.append("| %s | %s |" % (found.pop("kernel"), "; ".join("%s: %s" % pair for pair in found.items())))
        failed |= any(str(answer).startswith("FAILED") for answer in found.values())
        print("%s: %.0f s" % (line, time.monotonic() - begin), flush=True)
    print("\n".join(rows))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], set(filter(None, sys.argv[3:4] and sys.argv[3].split(","))))
    else:
        main()
