"""The rights of every process of kindling while a JVM streams, its symbols are read and answers are made, compared
with the table in docs/security.md. test_rights.py MAJOR. Needs root."""
import contextlib
import os
import pwd
import re
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, HERE, Daemon, Jvm, wait_for  # noqa: E402

MAJOR = "17"
SECURITY = os.path.join(HERE, "..", "..", "docs", "security.md")
HEADING = "## Who reads what, with which rights"
USERS = {"root": 0, "kindling": 70707, "kindling-look": 70708, "kindling-symbols": 70709, "kindling-upload": 70710,
         "kindling-names": 70711}
for name in USERS:
    with contextlib.suppress(KeyError):
        USERS[name] = pwd.getpwnam(name).pw_uid
SINK = "sinks:\n  - {name: dir, type: files, directory: /proc/nowhere/out}\n"  # its work does not matter here
NAMES = "names: { cri: unix:///nowhere/cri.sock }\n"  # likewise
CAPABILITIES = {name: bit for bit, name in enumerate(
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE".split())}


def status_of(pid):
    with open("/proc/%s/status" % pid) as f:
        return dict(line.rstrip("\n").split(":", 1) for line in f)


# Before Linux 5.19 every call of bpf(2) needs CAP_BPF, even for a map that is open already: kindlingd-data keeps it
# (docs/security.md), and so do the bounding sets of its children, which give up the capability itself.
KEPT = 1 << CAPABILITIES["BPF"] if tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) < (5, 19) else 0


def mask_of(words):
    """The rights of this test itself, which are the most that a daemon started by it can have ("all")."""
    if words == "all":
        return int(status_of("self")["CapEff"], 16)
    return sum(1 << CAPABILITIES[w] for w in words.split()) if words != "none" else 0


def table():
    """{process: its rights}, from the page."""
    with open(SECURITY) as f:
        text = f.read().split(HEADING, 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0].replace("`", ""): {"user": USERS[row[2]],
                                      "capabilities": mask_of(row[3]) | (KEPT if row[0] == "`kindlingd-data`" else 0),
                                      "no new privileges": row[4] == "never", "filter": row[5] != "all"}
            for row in rows[2:]}


def rights_of(status):
    """The rights in a status: all four uids must be equal, and no set of capabilities may exceed the effective one."""
    users = set(status["Uid"].split())
    held = {name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}
    return {"user": int(users.pop()) if len(users) == 1 else users,
            "capabilities": held["CapEff"] if held["CapPrm"] == held["CapEff"] and
            held["CapBnd"] in (held["CapEff"], held["CapEff"] | KEPT) and
            not held["CapAmb"] and not held["CapInh"] & ~held["CapEff"] else held,
            "no new privileges": status["NoNewPrivs"].strip() == "1",
            "filter": status["Seccomp"].strip() == "2"}


def role_of(pid, daemon):
    """The process's name in the table; None = it is not checked."""
    program = os.path.basename(os.readlink("/proc/%d/exe" % pid))
    with open("/proc/%d/cmdline" % pid) as f:
        words = f.read().split("\0")
    if program == "kindlingd":
        parent = int(status_of(pid)["PPid"])
        return "kindlingd" if pid == daemon else "kindlingd-data" if parent == daemon else "kindlingd-data, an answer"
    if program == "kindling-inject":
        if words[1:2] == ["filters"]:  # nothing, if it ends at this moment
            return "kindling-inject filters"
        # one process for each attempt, mostly in the JVM's namespaces and with its user
        return "kindling-inject receive" if {"receive", "reattach"} & set(words) else None
    return program if program.startswith("kindling-") else None


def children_of(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                for child in f.read().split():
                    yield int(child)
                    yield from children_of(int(child))


class Watch:
    """Watches all processes of a daemon: {role: rights that were seen, in order}."""

    def __init__(self, daemon, *others):
        """@others: processes that the daemon does not start"""
        self.daemon, self.others, self.seen, self.over = daemon.process.pid, others, {}, False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def look(self):
        for pid in [self.daemon, *self.others, *children_of(self.daemon)]:
            try:
                role, rights = role_of(pid, self.daemon), rights_of(status_of(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            if role and rights not in self.seen.setdefault(role, []):
                self.seen[role].append(rights)

    def run(self):
        while not self.over:
            try:
                self.look()
            except (FileNotFoundError, ProcessLookupError):
                pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over = True
        self.thread.join()


@contextlib.contextmanager
def filters(daemon):
    """Starts the process that reads seccomp filters as kindling-filters.service does; yields its pid."""
    process = subprocess.Popen([BUILD + "/bin/kindling-inject", "filters", daemon.dir + "/filters.sock"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


class Rights(unittest.TestCase):
    maxDiff = None

    def test_every_process_has_the_rights_of_the_table_and_no_others(self):
        expected = table()
        with Daemon(SINK + NAMES) as daemon, filters(daemon) as reader, Watch(daemon, reader) as watch, Jvm(MAJOR) as jvm:
            def all_seen():
                subprocess.run([BUILD + "/bin/kindling", "--socket", daemon.socket, "report", str(jvm.pid), "--last", "10s",
                                "-o", daemon.dir + "/out.txt"], capture_output=True)
                return all(rights in watch.seen.get(role, []) for role, rights in expected.items())
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 100)
            try:
                wait_for("all processes", all_seen)
            except AssertionError:
                pass  # the comparison says more
            last = {}
            for _ in range(5):  # a child that has just started has not given up its rights yet
                settled = Watch(daemon, reader)
                settled.look()
                last.update({role: rights for role, rights in settled.seen.items() if role in expected})
                time.sleep(0.2)
            self.assertEqual({role: rights for role, rights in expected.items() if rights not in watch.seen.get(role, [])},
                             {}, watch.seen)
            self.assertEqual(set(watch.seen), set(expected), "processes")
            for role in ("kindlingd", "kindlingd-data", "kindling-look", "kindling-inject receive", "kindling-inject filters", "kindling-upload",
                         "kindling-names"):
                self.assertEqual(last[role], [expected[role]], role)
            self.assertRegex(daemon.cli("status", "--json").stdout, r'"streaming"')
            self.assertEqual(jvm.end(), ("END\n", ""))

    def test_the_table_names_every_program_that_is_installed_to_read(self):
        programs = {p for p in os.listdir(BUILD + "/bin") if re.match(r"kindling-(look|symbols|inject|upload|names)$|kindlingd$", p)}
        self.assertEqual({re.split(r"[, ]|-data", name)[0] for name in table()}, programs)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MAJOR = sys.argv.pop(1)
    unittest.main(verbosity=2)
