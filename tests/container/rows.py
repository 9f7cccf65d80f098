"""The matrix as a table: the JVM's user, its root file system, its state, and the required result of an attach. A
cell expects `streaming`, or a pattern that the sentence of its refusal must match."""
import os
import resource
import signal
import subprocess
import tempfile
import time

import injection
from bundle import BUILD, Container

SYS_PIDFD_SEND_SIGNAL = "424"
SYS_SENDTO = "44"
SYS_FSTATFS = "138"
STREAMING = "streaming"

USERS = {
    "root": "root with an engine's default capabilities",
    "uid1000": "uid 1000, no capabilities, no_new_privs, a supplementary group",
    "userns": "uid 1000 of a user namespace (host uid 201000)",
}
ROOTS = {
    "plain": "writable root",
    "readonly": "read-only root, tmpfs on /tmp",
    "noexec": "read-only root, noexec tmpfs on /tmp",
    "sealed": "read-only root, no writable directory at all",
    "covered": "the same, with attach.tmpfs_over_tmp",
    "small": "1 MB tmpfs on /tmp, nearly full",
    "symlinks": "/tmp is a link to a link",
    "distroless": "nothing but the JDK and its libraries: no shell, no tools",
    "hardened": "no capabilities, no_new_privs, an engine's seccomp profile",
    "cgroupns": "private cgroup namespace",
    "fsgroup": "/tmp is for a supplementary group alone (fsGroup)",
    "idmapped": "an idmapped volume on /tmp (hostUsers: false)",
}
OWN_TMP = ("readonly", "noexec", "small", "symlinks", "fsgroup", "idmapped", "covered")  # these need the container's own /tmp


class State:
    """@expect: of an attach. @container: how the container is made. @before(c): after its start. @run(c): the
    attaches themselves; returns the outcome. @needs(cell): whether the combination exists."""

    def __init__(self, text, expect=STREAMING, container=None, before=None, run=None, needs=None, first=False):
        self.text, self.expect, self.container = text, expect, container or {}
        self.before, self.run, self.needs = before, run or attach_once, needs or (lambda cell: True)
        self.first = first  # it is refused before its root file system is looked at


# ---- one attach, seen through ---------------------------------------------------------------------------------


def see_through(c, result):
    """The result of one attach. A session is read until samples come, then ended."""
    if result.code != 0:
        result.close()
        return result.what
    wanted = {"noexec": "mount", "small": "mount", "covered": "tmpfs"}.get(c.kind, "copy")
    if result.strategy != wanted:
        raise AssertionError("placed by %s, not by %s" % (result.strategy, wanted))
    said = result.read({injection.CPU, injection.FAULT})
    text = "the agent says nothing" if not said else "agent: " + result.fault_text(said[1])
    samples = said and said[0] == injection.CPU
    if not result.detach() and samples:
        raise AssertionError("no BYE after DETACH")
    return STREAMING if samples else text


def attach_once(c):
    return see_through(c, injection.attach(c))


def attach_patiently(c, seconds=5.0):
    """Tries again after failures that pass by themselves, as the daemon does."""
    end = time.monotonic() + seconds
    while True:
        outcome = attach_once(c)
        if outcome == STREAMING or time.monotonic() > end:
            return outcome
        time.sleep(0.2)


# ---- states that are set up after the start ------------------------------------------------------------------


def attach_files(c):
    found = []
    for where in (c.inside("/app"), c.tmp_dir()):
        found += [os.path.join(where, n) for n in os.listdir(where) if n.startswith(".attach_pid")]
    return found


def while_still(stop, go):
    """The JVM is stopped after the last check and before SIGQUIT: the signal stays pending."""
    def run(c):
        hook = stop(c)
        result = injection.attach(c, deadline_ms=1000, wrap=(
            BUILD + "/tests/at_syscall", "before", SYS_PIDFD_SEND_SIGNAL, hook))
        if result.status == 126:  # it is refused before a signal would be sent
            return see_through(c, result)
        if result.code == 0 or "did not react to SIGQUIT" not in result.what:
            raise AssertionError("a stopped JVM: %r" % result.what)
        if len(attach_files(c)) != 1:
            raise AssertionError("no .attach_pid while SIGQUIT is pending: %s" % attach_files(c))
        go(c)
        time.sleep(0.3)  # the signal that was pending is the first that it handles
        return attach_patiently(c)
    return run


def stopped(c):
    c.signal(signal.SIGSTOP)
    while "State:\tT" not in read("/proc/%d/status" % c.pid):
        time.sleep(0.001)


def refused_then(go):
    """Refused at first; streaming after @go has removed the cause."""
    def run(c):
        outcome = attach_once(c)
        go(c)
        then = attach_patiently(c)
        if then != STREAMING and c.kind != "sealed":
            raise AssertionError("afterwards: %s" % then)
        return outcome
    return run


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


def read_number(path):
    return int(read(path))


def freezer_v1(c, word):
    path = c.cgroup("freezer") + "/freezer.state"
    write(path, word)
    while word == "FROZEN" and read(path).strip() != word:
        time.sleep(0.01)
        write(path, word)


def unified_dir(c):
    return "/sys/fs/cgroup/unified/" + c.name


def freezer_v2(c):
    os.makedirs(unified_dir(c), exist_ok=True)
    write(unified_dir(c) + "/cgroup.procs", str(c.pid))
    write(unified_dir(c) + "/cgroup.freeze", "1")
    while "frozen 1" not in read(unified_dir(c) + "/cgroup.events"):
        time.sleep(0.01)


def thaw_v2(c):
    write(unified_dir(c) + "/cgroup.freeze", "0")
    write("/sys/fs/cgroup/unified/cgroup.procs", str(c.pid))
    os.rmdir(unified_dir(c))


def no_tasks(c):
    directory = c.cgroup("pids")
    write(directory + "/pids.max", str(read_number(directory + "/pids.current")))


def more_tasks(c):
    write(c.cgroup("pids") + "/pids.max", "300")


def as_owner(c, do):
    """Runs @do in a child with the JVM's ids, for actions that only its own user may do."""
    pid = os.fork()
    if pid == 0:
        try:
            uid = c.host_uid()
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            do()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        raise AssertionError("a child as uid %d failed" % c.host_uid())


def no_processes(c):
    """RLIMIT_NPROC is reached. Setting another process's limit needs CAP_SYS_RESOURCE."""
    def limit():
        hard = resource.prlimit(c.pid, resource.RLIMIT_NPROC)[1]
        resource.prlimit(c.pid, resource.RLIMIT_NPROC, (1, hard))
    as_owner(c, limit)


def no_memory(c):
    directory = c.cgroup("memory")
    for _ in range(5):  # capabilities that can be taken back are taken back first
        try:
            write(directory + "/memory.limit_in_bytes",
                  str(read_number(directory + "/memory.usage_in_bytes") + (4 << 20)))
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("memory.limit_in_bytes was not set")


def more_memory(c):
    write(c.cgroup("memory") + "/memory.limit_in_bytes", str(512 << 20))


def delete_libjvm(c):
    os.unlink(c.inside("/jdk" + c.jdk.libjvm()))


def delete_socket(c):
    """Attached once, then a cleaner of /tmp deleted the socket."""
    outcome = attach_once(c)
    sockets = [n for n in os.listdir(c.tmp_dir()) if n.startswith(".java_pid")]
    if outcome == STREAMING and sockets != ([] if c.kind == "covered" else [".java_pid1"]):
        raise AssertionError("sockets: %s" % sockets)
    for name in sockets:
        os.unlink(os.path.join(c.tmp_dir(), name))
    return attach_once(c)


def take_socket_at_once(c):
    """A JVM that starts deletes an existing socket of its name, which may be the one that it has just made for us."""
    path = "%s/.java_pid1" % c.tmp_dir()
    hook = "for i in $(seq 500000); do [ -S '%s' ] && rm '%s' && break; done" % (path, path)
    result = injection.attach(c, wrap=(BUILD + "/tests/at_syscall", "after", SYS_PIDFD_SEND_SIGNAL, hook))
    return see_through(c, result)


def take_socket_late(c):
    """The same after we have connected: the JVM gets its socket's name back, because without it the owner's kill -3
    would print once and never again."""
    hook = "rm -f '%s/.java_pid1'" % c.tmp_dir()
    result = injection.attach(c, wrap=(BUILD + "/tests/at_syscall", "before", SYS_SENDTO, hook))
    outcome = see_through(c, result)
    if outcome == STREAMING and c.kind != "covered" and not os.path.exists(c.tmp_dir() + "/.java_pid1"):
        raise AssertionError("it has no attach socket that could be found")
    return outcome


def cleaner(c):
    """A cleaner of /tmp deletes /tmp/kindling during the attach; the next attempt works."""
    hook = "rm -rf '%s/kindling' 2>/dev/null; true" % c.tmp_dir()
    result = injection.attach(c, wrap=(BUILD + "/tests/at_syscall", "before", SYS_SENDTO, hook))
    if result.status == 126:
        return see_through(c, result)
    outcome = see_through(c, result)
    if outcome != STREAMING and "not load" not in outcome and "was deleted" not in outcome:
        raise AssertionError("while it was cleaned: %s" % outcome)
    return attach_patiently(c)


def shared_tmp(c):
    """Two pods with one /tmp, both pid 1, so both have the same name for the attach socket. The second takes the name
    over; the first cannot be reached any more, and must be refused without a signal."""
    first = attach_once(c)
    with Container(c.jdk, user=c.user, root=c.kind, runtime=c.runtime, tmp=c.tmp) as other:
        kept = other.kept_lines()
        second = attach_once(other)
        again = attach_once(c)
        other.check_output(kept)
        if second != STREAMING or "another process" not in again:
            raise AssertionError("second: %s; first again: %s" % (second, again))
    return first


# ---- the table ------------------------------------------------------------------------------------------------

DISABLED = r"forbids attaching"
launcher_9 = dict(needs=lambda cell: cell.jdk != "8")  # JDK 8 has no such source

STATES = {
    "normal": State("as it comes"),
    "xrs": State("-Xrs", container=dict(options=["-Xrs"]), needs=lambda cell: cell.root != "covered"),
    "off: command line": State("-XX:+DisableAttachMechanism in the command line", DISABLED,
                               dict(options=["-XX:+DisableAttachMechanism"]), first=True),
    "off: JAVA_TOOL_OPTIONS": State("the same in JAVA_TOOL_OPTIONS", DISABLED,
                                    dict(env=["JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism"]), first=True),
    "off: JDK_JAVA_OPTIONS": State("the same in JDK_JAVA_OPTIONS", DISABLED,
                                   dict(env=["JDK_JAVA_OPTIONS=-XX:+DisableAttachMechanism"]), first=True,
                                   **launcher_9),
    "off: @file": State("the same in a file of arguments", DISABLED, dict(options=["@/app/off.args"]), first=True,
                        **launcher_9),
    "off: -XX:Flags": State("the same in a file of flags", DISABLED, dict(options=["-XX:Flags=/app/off.flags"]),
                            first=True),
    "off: VMOptionsFile": State("the same in a file of options", DISABLED,
                                dict(options=["-XX:VMOptionsFile=/app/off.args"]), first=True, **launcher_9),
    "owner's no": State("KINDLING_DISABLE=1 in its environment", r"owner forbids profiling",
                        dict(env=["KINDLING_DISABLE=1"]), first=True),
    "no agents": State("-XX:-EnableDynamicAgentLoading", r"forbids agents",
                       dict(options=["-XX:-EnableDynamicAgentLoading"]), first=True, **launcher_9),
    "libjvm deleted": State("libjvm.so was deleted under it, as by an upgrade", container=dict(own_jdk=True),
                            before=delete_libjvm),
    "renamed": State("its launcher is not called java", container=dict(own_jdk=True, launcher="service")),
    "embedded": State("a program with a JVM inside, loaded RTLD_LOCAL", container=dict(launcher="embed_jvm"),
                      needs=lambda cell: cell.jdk != "17-musl"),
    "off: in the code": State("the same, and its code says -XX:+DisableAttachMechanism", DISABLED,
                              dict(launcher="embed_jvm", env=["SERVER_OPTION=-XX:+DisableAttachMechanism"]),
                              needs=lambda cell: cell.jdk != "17-musl", first=True),
    "socket deleted": State("a cleaner took its attach socket away", run=delete_socket),
    "socket gone at once": State("its attach socket is taken away as soon as it is made", run=take_socket_at_once),
    "socket gone late": State("the same, while it is spoken to", run=take_socket_late),
    "stopped": State("SIGSTOP (streaming when it goes on)", r"stopped", before=stopped, run=refused_then(lambda c: c.signal(signal.SIGCONT)),
                     first=True),
    "stopped, signalled": State("SIGSTOP while SIGQUIT is on its way", run=while_still(
        lambda c: "kill -STOP %d" % c.pid, lambda c: c.signal(signal.SIGCONT))),
    "frozen": State("frozen by cgroup v1 (streaming when it goes on)", r"frozen", before=lambda c: freezer_v1(c, "FROZEN"),
                    run=refused_then(lambda c: freezer_v1(c, "THAWED")), first=True),
    "frozen v2": State("frozen by cgroup v2 (streaming when it goes on)", r"frozen", before=freezer_v2, run=refused_then(thaw_v2), first=True,
                       needs=lambda cell: os.path.exists("/sys/fs/cgroup/unified/cgroup.procs")),
    "frozen, signalled": State("frozen while SIGQUIT is on its way", run=while_still(
        lambda c: "echo FROZEN >%s/freezer.state" % c.cgroup("freezer"), lambda c: freezer_v1(c, "THAWED"))),
    "pids.max": State("pids.max is reached (streaming when there is room)", r"too few threads.*pids\.max", before=no_tasks,
                      run=refused_then(more_tasks), first=True),
    "RLIMIT_NPROC": State("RLIMIT_NPROC is reached", r"too few threads.*RLIMIT_NPROC", before=no_processes,
                          first=True),
    "memory.max": State("4 MB below its memory limit (streaming when there is room)", r"too little memory", before=no_memory,
                        run=refused_then(more_memory), first=True),
    "timer_create kills": State("a seccomp filter that ends the process at timer_create", r"seccomp",
                                dict(seccomp=["timer_create"]), first=True),
    "shared /tmp": State("two pods with one /tmp, both pid 1", run=shared_tmp,
                         container=dict(tmp=True), needs=lambda cell: cell.root not in OWN_TMP + ("sealed",)),
    "cleaner": State("a cleaner takes /tmp/kindling away during the attach", run=cleaner),
    "CRaC": State("-XX:CRaCCheckpointTo", r"CRaC", dict(options=[
        "-XX:+IgnoreUnrecognizedVMOptions", "-XX:CRaCCheckpointTo=/var/tmp/image"]), first=True),
    "Xcheck:jni": State("-Xcheck:jni", container=dict(options=["-Xcheck:jni"])),
}


class Cell:
    def __init__(self, jdk, user, root, state, runtime):
        self.jdk, self.user, self.root, self.state, self.runtime = jdk, user, root, state, runtime

    def key(self):
        return (self.jdk, self.user, self.root, self.state, self.runtime)

    def __str__(self):
        return "%-7s %-8s %-11s %-23s %-5s" % self.key()

    def exists(self):
        if self.root == "idmapped" and self.user != "userns":
            return False
        return STATES[self.state].needs(self)

    def expectation(self):
        state = STATES[self.state]
        if self.state == "RLIMIT_NPROC" and self.user == "root":
            return STREAMING if self.root != "sealed" else r"no writable"  # the kernel lets root pass anyway
        if self.state == "xrs" and self.root == "sealed":
            return r"-Xrs and has no attach socket"
        if state.first:
            return state.expect
        return r"no writable /tmp" if self.root == "sealed" else state.expect

    def container(self, jdk):
        made = dict(STATES[self.state].container)
        if made.pop("tmp", False):
            made["tmp"] = tempfile.mkdtemp(prefix="kindling-tmp-")
            os.chmod(made["tmp"], 0o1777)
        return Container(jdk, user=self.user, root=self.root, runtime=self.runtime, **made)


def fill_small(c):
    """/tmp is nearly full: there is room for a socket, but not for the library."""
    tmp_fd = os.open(c.tmp_dir(), os.O_RDONLY | os.O_DIRECTORY)

    def fill():
        fd = os.open("cache", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=tmp_fd)
        os.write(fd, b"x" * (600 << 10))
    as_owner(c, fill)
    os.close(tmp_fd)


def processes_named(name):
    out = subprocess.run(["pgrep", "-x", name], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in out]
