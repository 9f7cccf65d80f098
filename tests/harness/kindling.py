"""A daemon for one test, JVMs for it to find, and the queries that tests make."""
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jdks  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("KINDLING_BUILD", os.path.join(HERE, "..", "..", "build", "jvm"))


# Every JVM that a test starts carries this mark, and a test's daemon profiles no other: several tests run on one
# machine. Containers have an environment of their own, so there a test's daemon profiles all JVMs except those that
# another test marked.
os.environ.setdefault("KINDLING_TEST", "%d-%d" % (os.getpid(), time.time_ns()))
ONLY_MINE = """targets:
  mode: opt-in
  attach_rate: 0
  rules:
    - allow: { environment: "KINDLING_TEST=%s" }
""" % os.environ["KINDLING_TEST"]
NOT_OTHERS = """targets:
  attach_rate: 0
  rules:
    - allow: { environment: "KINDLING_TEST=%s" }
    - deny: { environment: "KINDLING_TEST=*" }
""" % os.environ["KINDLING_TEST"]
IN_CONTAINERS = os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0]))) == "container"


def skip(why):
    """A missing prerequisite: visible and skipped for a user, a failure on CI."""
    print("SKIPPED: " + why)
    sys.exit(1 if os.environ.get("CI") else 77)


def java_home(major):
    home = jdks.home_of(major)
    if not home:
        skip("there is no JDK %s" % major + ("" if "musl" in major else "; tests/run fetches it"))
    return home


def java_home_for_all(major):
    """A java home that every user can run: a JDK may be in root's cache, which only root can read."""
    home, above = java_home(major), os.path.realpath(java_home(major))
    while os.stat(above).st_mode & 0o5 == 0o5 and above != "/":
        above = os.path.dirname(above)
    if above == "/":
        return home
    out = os.path.join(BUILD, "jdk-" + major)
    if not os.path.exists(out):
        temp = out + ".%d" % os.getpid()
        shutil.copytree(home, temp, symlinks=True)
        os.chmod(temp, 0o755)
        try:
            os.rename(temp, out)
        except OSError: # another test was faster
            shutil.rmtree(temp)
    return out


def classes():
    """Compiled workloads, once per build and set of sources."""
    sources = sorted(os.path.join(HERE, "java", f) for f in os.listdir(os.path.join(HERE, "java")))
    text = hashlib.sha256()
    for path in sources:
        with open(path, "rb") as f:
            text.update(f.read())
    out = os.path.join(BUILD, "classes-" + text.hexdigest()[:12])
    if not os.path.exists(out):
        temp = out + ".%d" % os.getpid()
        subprocess.run([java_home("17") + "/bin/javac", "-nowarn", "--release", "8", "-Xlint:-options", "-d", temp]
                       + sources, check=True)
        try:
            os.rename(temp, out)
        except OSError: # another test was faster
            shutil.rmtree(temp)
    return out


WAIT_S = 100.0  # a machine that does other work is slow


def wait_for(what, condition, seconds=WAIT_S):
    """Waits until @condition() is true. The deadline only ends a test that hangs: a busy machine may take long."""
    return timed_wait(what, condition, seconds)[0]


def timed_wait(what, condition, seconds=WAIT_S):
    """Like wait_for(), but returns (value, seconds it took, seconds of these in which this machine did not let the
    test run)."""
    begin = now = time.monotonic()
    late, fastest = 0.0, None
    while now < begin + seconds:
        value = condition()
        looked = time.monotonic()
        fastest = looked - now if fastest is None else min(fastest, looked - now)
        late += looked - now - fastest
        if value:
            return value, looked - begin, late
        time.sleep(0.05)
        now = time.monotonic()
        late += now - looked - 0.05
    raise AssertionError("not within %.0f s: %s" % (seconds, what))


class Alone:
    """A lock that one process of this machine holds at a time, repeatedly if it wants. A daemon that starts detaches
    agents that a killed daemon left in JVMs which it may not profile, so also those of another test whose daemon
    is dead at that moment. So while a test's daemon is dead only that test starts another one, and a daemon is
    killed only when no other daemon has still to examine such a JVM for the first time."""

    def __init__(self, path):
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.depth = 0

    def __enter__(self):
        if self.depth == 0:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.depth += 1

    def __exit__(self, *unused):
        self.depth -= 1
        if self.depth == 0:
            fcntl.flock(self.file, fcntl.LOCK_UN)


starts = Alone("/tmp/kindling-test-starts.lock")


SEEN_S = 10  # waiting does not include a daemon that delays the JVM (attach_rate) or has no room for it


def agents():
    """The pids of processes in which an agent's thread lives."""
    found = set()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if "kindling" in thread_names(pid)[1:]:  # the first task is the program's own thread
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended meanwhile
    return found


def wait_seen(status):
    """Waits until a daemon has examined every agent that exists: it answers before that, on a busy machine by
    seconds."""
    end = time.monotonic() + SEEN_S
    while time.monotonic() < end:
        there = agents()
        known = {t["pid"]: t["state"] for t in status()["targets"]} if there else {}
        if all(known.get(pid, "found") != "found" for pid in there):
            return
        time.sleep(0.05)


def sockets():
    """Daemons of this machine that see its processes under the same pids as this test."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                words = f.read().split("\0")
            with open("/proc/%s/comm" % pid) as f:
                is_warden = f.read() == "kindlingd\n"
            if not words[0].endswith("/kindlingd") or not is_warden or os.readlink("/proc/%s/ns/pid" % pid) != os.readlink("/proc/self/ns/pid"):
                continue
            config = words[words.index("--config") + 1] if "--config" in words else "/etc/kindling/kindlingd.yaml"
            with open("/proc/%s/root%s" % (pid, config)) as f:
                found = re.search(r"^socket: *(\S+)", f.read(), re.M)
            yield "/proc/%s/root%s" % (pid, found[1] if found else "/run/kindling/kindling.sock")
        except OSError:
            pass  # it has ended meanwhile, or has no such file


def wait_seen_by_all(pid):
    """Waits until every daemon of other tests has examined this JVM once: in its first look a daemon detaches an
    agent without a reader. Stopped daemons are left out; they look when `starts` is free (Daemon.resume)."""
    def has_seen(path):
        try:
            done = subprocess.run([BUILD + "/bin/kindling", "--socket", path, "status", "--json"], capture_output=True, text=True, timeout=3)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0 or any(t["pid"] == pid and t["state"] != "found" for t in json.loads(done.stdout)["targets"])
    waits, end = set(sockets()), time.monotonic() + SEEN_S
    while waits and time.monotonic() < end:  # a daemon may have no room for it, or not look for JVMs at all
        waits = {path for path in waits if not has_seen(path)}


class Api(http.client.HTTPConnection):
    """A connection to a daemon's socket."""

    def __init__(self, path):
        super().__init__("kindlingd", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, settings="", wrap=(), build=BUILD):
        """@settings: if they have no `targets:`, JVMs of other tests are left alone. @wrap: words in front of the
        daemon's own, as in ("setpriv", "--bounding-set", "-bpf"). @build: the tree whose programs run; another one
        may follow (test_upgrade.py)."""
        self.wrap, self.build = list(wrap), build
        self.killed = self.paused = False
        self.dir = tempfile.mkdtemp(prefix="kindling-test-")
        os.chmod(self.dir, 0o755)  # for the data process
        self.socket = self.dir + "/kindling.sock"
        self.config = self.dir + "/kindlingd.yaml"
        if not re.search(r"^targets:", settings, re.M):  # a sink has targets, too
            settings += NOT_OTHERS if IN_CONTAINERS else ONLY_MINE
        self.configure(settings)
        self.log = open(self.dir + "/log", "ab")
        self.process = None
        self.start()

    def configure(self, settings):
        with open(self.config, "w") as f:
            f.write("socket: %s\nstate_dir: %s/state\n%s" % (self.socket, self.dir, settings))

    def start(self):
        with starts:
            self.process = subprocess.Popen(self.wrap + [self.build + "/bin/kindlingd", "--config", self.config],
                                            stderr=self.log, stdout=self.log)
            wait_for("the daemon's socket", lambda: self.cli("status", check=False).returncode == 0)
            self.wait_seen()
        self.replaced()
        self.paused = False

    def wait_seen(self):
        wait_seen(self.status)

    def replaced(self):
        if self.killed:
            starts.__exit__()
        self.killed = False

    def cli(self, *args, check=True, timeout=120):
        done = subprocess.run([self.build + "/bin/kindling", "--socket", self.socket, *args], capture_output=True,
                              text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError("kindling %s: %d\n%s%s" % (" ".join(args), done.returncode, done.stdout, done.stderr))
        return done

    def tail(self, pid, events, seconds, *options):
        """What `kindling tail` prints of these events in so many seconds."""
        command = [self.build + "/bin/kindling", "--socket", self.socket, "tail", "--event", events, "--json", *options, str(pid)]
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            with subprocess.Popen(command, stdout=out) as p:
                time.sleep(seconds)
                p.terminate()
            out.seek(0)
            return [json.loads(line) for line in out if line.endswith("}\n")]

    def ask(self, path, method="GET"):
        """The body of the API's answer. Tests that wait ask for the status twenty times a second; to start `kindling` or
        curl for it each time would cost a sixth of a CPU."""
        with contextlib.closing(Api(self.socket)) as api:
            try:
                api.request(method, path)
                return api.getresponse().read()
            except (OSError, http.client.HTTPException) as e:
                raise AssertionError("no answer to %s %s: %r" % (method, path, e))

    def status(self):
        """What `kindling status --json` prints."""
        return json.loads(self.ask("/v1/status"))

    def target(self, pid):
        for t in self.status()["targets"]:
            if t["pid"] == pid:
                return t
        return None

    def wait_state(self, pid, state, seconds=WAIT_S):
        def reached():
            t = self.target(pid)
            return t if t and t["state"] == state else None
        try:
            return wait_for("pid %d %s" % (pid, state), reached, seconds)
        except AssertionError:
            raise AssertionError("pid %d is not %s: %s\n%s" % (pid, state, self.target(pid), self.read_log()))

    def wait_arrived(self, pid):
        """Waits until what a JVM did before this call has arrived: of two new ledgers of its agent the second was
        written after the call began, and a stream keeps its order. An agent that has nothing to send writes no
        ledgers, so the JVM must be at work."""
        for _ in range(2):
            before = self.target(pid)["agent"]["session_ns"]
            wait_for("a ledger of pid %d" % pid, lambda: self.target(pid)["agent"]["session_ns"] != before)

    def wait_window(self, end_s):
        """Waits until the window that ends at @end_s is closed and in the store."""
        time.sleep(max(0.0, end_s - time.time()))
        windows = self.status()["store"]["windows"]  # the one before was closed 8 s ago
        wait_for("the window in the store", lambda: self.status()["store"]["windows"] > windows)

    def metrics(self):
        """Those without labels."""
        text = self.ask("/metrics").decode()
        return {name: float(value) for name, value in (line.split() for line in text.splitlines()
                                                       if line[0] != "#" and "{" not in line)}

    def read_log(self):
        with open(self.dir + "/log") as f:
            return f.read()

    def data_pid(self):
        """The data process, which does the work; the other process, self.process, keeps the rights."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            for child in f.read().split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError), open("/proc/%s/comm" % child) as comm:
                    if comm.read() == "kindlingd-data\n":
                        return int(child)
        return self.process.pid

    def pause(self):
        self.paused = True
        os.kill(self.data_pid(), signal.SIGSTOP)

    def resume(self):
        """Continues a stopped daemon, which now examines JVMs that began meanwhile, like a daemon that starts."""
        self.paused = False
        with starts:
            os.kill(self.data_pid(), signal.SIGCONT)
            self.wait_seen()

    def kill(self):
        if not self.killed:
            starts.__enter__()
        self.killed = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            return self.process.wait(timeout=60)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            if self.paused:
                self.resume()
            os.kill(self.data_pid(), signal.SIGCONT)  # the test may have ended it in another way
            self.stop()
        self.replaced()
        self.log.close()
        shutil.rmtree(self.dir)


class Tail:
    """Watches the stream of one JVM: the longest time in which nothing arrived, and the longest way of a sample."""

    def __init__(self, daemon, pid):
        self.process = subprocess.Popen([BUILD + "/bin/kindling", "--socket", daemon.socket, "tail", "--json", str(pid)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines, self.longest, self.last, self.latest = 0, 0.0, None, 0.0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            now, taken = time.monotonic(), json.loads(line).get("ts_ns")
            if self.last is not None:
                self.longest = max(self.longest, now - self.last)
            if taken is not None:
                self.latest = max(self.latest, time.time() - taken / 1e9)
            self.last, self.lines = now, self.lines + 1

    def end(self):
        self.process.kill()
        self.process.wait()


def tell_of_crash(pid, out, err):
    """Information about a JVM that died: its last output, and the file that HotSpot writes."""
    path = "hs_err_pid%d.log" % pid
    report = ""
    if os.path.exists(path):
        with open(path) as f:
            report = f.read(12000)
    print("JVM %d was ended by SIGABRT\n%s%s%s" % (pid, out[-2000:], err[-2000:], report), file=sys.stderr)


class Jvm:
    """A workload that prints READY and reads commands from stdin. @full: KnownShares uses 2.8 CPUs, for tests that
    measure; in others it uses 0.35 and leaves the machine to the rest of the test and to tests beside it."""

    def __init__(self, major, main="KnownShares", *args, options=("-Xmx128m",), path=None, env=None, uid=None, full=False):
        if main == "KnownShares" and not full:
            options = ("-DdividedBy=8", *options)
        other = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        home = java_home(major) if uid is None else java_home_for_all(major)
        self.process = subprocess.Popen([*jdks.command(home, BUILD), *options, "-cp", path or classes(), main, *args],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=env, **other)
        self.pid = self.process.pid
        first = self.process.stdout.readline()
        if first != "READY\n":
            raise AssertionError("%r instead of READY\n%s" % (first, self.process.communicate()))

    def mark(self):
        """CPU time of each group so far, in ns."""
        self.process.stdin.write("mark\n")
        self.process.stdin.flush()
        return {k: int(v) for k, v in (x.split("=") for x in self.process.stdout.readline().split()[1:])}

    def alive(self):
        return self.process.poll() is None

    def end(self):
        """Ends it; returns its output since READY, which must be END and nothing else."""
        out, err = self.process.communicate("end\n", timeout=60)
        return out, err

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.alive():
            self.process.kill()
        out, err = self.process.communicate()
        if self.process.returncode == -signal.SIGABRT:
            tell_of_crash(self.pid, out, err)


def cpu_ns(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * (10 ** 9 // os.sysconf("SC_CLK_TCK"))


def until_cpu(pid, seconds):
    """Sleeps for @seconds, and then until process @pid has used that much CPU time: with less, a sampler has too few
    samples for a verdict. A process that waits itself is not waited for endlessly."""
    begin, first = time.monotonic(), cpu_ns(pid)
    while True:
        time.sleep(0.05)
        passed = time.monotonic() - begin
        try:
            had = (cpu_ns(pid) - first) / 1e9
            with open("/proc/%d/stat" % pid) as f:
                ended = f.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return
        if ended or passed > 20 * seconds or passed >= seconds and had >= seconds:
            return


class Lateness:
    """Measures how late this machine wakes sleeping threads, summed up over a with block, in .seconds."""

    def __enter__(self):
        self.seconds, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def run(self):
        begin = time.monotonic()
        while not self.over.wait(0.01):
            now = time.monotonic()
            self.seconds += max(0.0, now - begin - 0.02)
            begin = now

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()


class Wakes:
    """Processes that wake up and use as little CPU time as kindling does, beside a daemon: harness/wakes.c. Without @words they
    are where this process is."""
    HOPS = 5  # from an agent to whoever follows its samples
    WORK_US = 2000  # each 50 ms: 4 % of a core, as much as all of kindling uses beside one JVM

    def __init__(self, words=()):
        self.process = subprocess.Popen([*words, BUILD + "/tests/wakes", str(self.HOPS), str(self.WORK_US)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def longest(self):
        """In seconds, since the last question: the longest time for which one of them was kept waiting."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return max(0.0, float(self.process.stdout.readline()) / 1000 - 0.05)

    def __enter__(self):
        self.longest()
        return self

    def __exit__(self, *unused):
        self.process.communicate()


class Contention(Lateness):
    """Like Lateness, and also measures how many times its CPU time work takes on this machine, in .times: on a busy
    machine a daemon that starts gets only a part of a CPU."""

    def run(self):
        wall = cpu = 0.0
        while not self.over.wait(0.04):
            begin, used = time.monotonic(), time.thread_time()
            while time.thread_time() - used < 0.004:
                pass
            wall, cpu = wall + time.monotonic() - begin, cpu + time.thread_time() - used
        self.times = max(1.0, wall / cpu) if cpu else 1.0


class Pace(Lateness):
    """Like Lateness, and also measures how many times as much CPU time this machine needs for the same calls of the kernel as the
    one on which docs/security.md has its figures, in .times: 1 at least."""
    CALLS, SECONDS = 200, 0.0007

    def run(self):
        took = []
        with open("/proc/self/stat", "rb") as f:
            while not self.over.wait(0.2) or not took:
                begin = time.thread_time()
                for _ in range(self.CALLS):
                    os.pread(f.fileno(), 4096, 0)
                took.append(time.thread_time() - begin)
        self.times = max(1.0, statistics.median(took) / self.SECONDS)


def timers(pid):
    """POSIX timers of a process, to check that none of the agent's exists without a daemon."""
    with open("/proc/%d/timers" % pid) as f:
        return f.read().count("ID:")


def thread_names(pid):
    names = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
                names.append(f.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended meanwhile
    return names


def agent_copies(pid):
    """Different files of the agent that are mapped."""
    with open("/proc/%d/maps" % pid) as f:
        return len({line.split()[4] for line in f if "libkindling" in line})


def accounts_balance(target):
    s = target["samples"]
    assert s["taken"] == s["delivered"] + sum(s["dropped"].values()), s
    assert s["dropped"]["lost_on_wire"] == 0 and s["dropped"]["implausible"] == 0, s
    return s
