"""Containers for the matrix: for each cell an OCI bundle that runc or crun runs, and access to it from the host."""
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import idmap  # noqa: E402
import jdks  # noqa: E402
from kindling import BUILD, classes, wait_for  # noqa: E402

READ_ONLY = ["bind", "ro", "nosuid", "nodev"]
DOCKER_CAPS = ["CAP_" + c for c in (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE").split()]
# system calls that container engines refuse by default, as far as an agent could need them
REFUSED_CALLS = ("acct add_key bpf clock_settime delete_module finit_module init_module ioperm iopl kexec_load keyctl "
                 "lookup_dcookie mount mount_setattr move_mount name_to_handle_at nfsservctl open_by_handle_at "
                 "open_tree perf_event_open personality pivot_root process_vm_readv process_vm_writev ptrace quotactl "
                 "reboot request_key setns settimeofday swapon swapoff umount2 unshare userfaultfd").split()
USERNS_FIRST = 200000
GROUP = 4242
LIBRARIES = ("libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libz.so.1 libstdc++.so.6 libgcc_s.so.1").split()

WORDS = {"out": "line", "err": "error line"}

OPTION_FILES = {"off.args": "-XX:+DisableAttachMechanism\n", "off.flags": "+DisableAttachMechanism\n"}

prepare = threading.Lock()
shared_dirs = {}


def tmpfs(where, *options, size="64m"):
    return {"destination": where, "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=1777", "size=" + size, *options]}


def bind(source, where, options=READ_ONLY):
    return {"destination": where, "type": "none", "source": source, "options": options}


def shared(name, fill):
    """A directory made once per run and bound read-only into many containers."""
    with prepare:
        if name not in shared_dirs:
            path = tempfile.mkdtemp(prefix="kindling-shared-")
            os.chmod(path, 0o755)
            fill(path)
            shared_dirs[name] = path
        return shared_dirs[name]


def shared_end():
    for path in shared_dirs.values():
        shutil.rmtree(path, ignore_errors=True)
    shared_dirs.clear()


class Jdk:
    """A directory that is made once per run and mounted read-only into many containers."""

    def __init__(self, major):
        self.major = major
        self.home = jdks.home_of(major)
        self.musl = major == "17-musl"
        self.sysroot = (jdks.root_of(self.home) if self.home else None) or ""
        inside = self.home[len(self.sysroot):] if self.home else ""
        self.inside = inside if inside.startswith("/usr/") else "/jdk"

    def libjvm(self):
        found = glob.glob(self.home + "/lib/server/libjvm.so") + glob.glob(self.home + "/lib/*/server/libjvm.so")
        return found[0][len(self.home):]

    def etc(self):
        """Debian's JDKs keep their settings in /etc."""
        return [bind(p, p[len(self.sysroot):]) for p in glob.glob(self.sysroot + "/etc/java-*")]

    def libraries(self):
        def fill(path):
            for name in LIBRARIES:
                found = glob.glob(self.sysroot + "/usr/lib/x86_64-linux-gnu/" + name)
                if found:
                    shutil.copy(os.path.realpath(found[0]), path + "/" + name)
            loader = glob.glob(self.sysroot + "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
            shutil.copy(os.path.realpath(loader[0]), path)
        return shared("libraries" + self.sysroot, fill)


# a mark, so that daemons of other tests leave its JVM alone, see harness/kindling.py
MARK = "KINDLING_TEST=" + os.environ["KINDLING_TEST"]


class Container:
    """One cell's container. @user: root, uid1000, userns. @root: see ROOTS in rows.py. @tmp: a directory of the
    host to be its /tmp; @args: words for the JVM; @env: its variables; @own_jdk: a JDK that may be changed;
    @libjvm_date: of that JDK; @engine: whose container it is, see engines.py; @cpus: as many it may use; @pids: of
    processes and threads."""
    count = 0

    def __init__(self, jdk, user="uid1000", root="plain", runtime="runc", options=(), env=(), launcher="java",
                 own_jdk=False, tmp=None, seccomp=None, main="Ticks", libjvm_date=None, engine=None, cpus=None, pids=300):
        with prepare:
            Container.count += 1
            self.name = engine.id if engine else "kindling-cell-%d-%d" % (os.getpid(), Container.count)
        self.engine, self.libjvm_date = engine, libjvm_date
        self.jdk, self.user, self.kind, self.runtime = jdk, user, root, runtime
        self.own_jdk, self.launcher, self.tmp, self.kill_calls = own_jdk, launcher, tmp, seccomp
        self.cpus, self.pids = cpus, pids
        self.dir = tempfile.mkdtemp(prefix="kindling-cell-")
        self.root = self.dir + "/root"
        self.mounted = []
        self.pid = None
        os.chmod(self.dir, 0o755)
        try:
            self.make_root()
            self.write_config(list(options), list(env), main)
            self.up()
        except BaseException:
            self.down()
            raise

    # ---- its root ---------------------------------------------------------------------------------------

    def make_root(self):
        for path in ("etc", "proc", "dev", "sys", "app", "var/tmp", "scratch/tmp", "jdk", "lib64"):
            os.makedirs(os.path.join(self.root, path), exist_ok=True)
        if self.kind == "symlinks":
            os.symlink("/var/chain", self.root + "/tmp")
            os.symlink("../scratch/tmp", self.root + "/var/chain")
        else:
            os.mkdir(self.root + "/tmp")
        for path in ("/tmp", "/var/tmp", "/scratch/tmp"):
            if not os.path.islink(self.root + path):
                os.chmod(self.root + path, 0o1777)
        with open(self.root + "/etc/passwd", "w") as f:
            f.write("root:x:0:0::/root:/bin/false\napp:x:1000:1000::/tmp:/bin/false\n")
        shutil.copy(classes() + "/Ticks.class", self.root + "/app")
        for name, text in OPTION_FILES.items():
            with open(self.root + "/app/" + name, "w") as f:
                f.write(text)
        if self.own_jdk:
            self.overlay_jdk()
        if self.jdk.musl:
            os.makedirs(self.root + "/lib")
            shutil.copy("/usr/lib/x86_64-linux-musl/libc.so", self.root + "/lib/ld-musl-x86_64.so.1")
        elif self.kind == "distroless":
            os.makedirs(self.root + "/lib/x86_64-linux-gnu")
            shutil.copy(self.jdk.libraries() + "/ld-linux-x86-64.so.2", self.root + "/lib64")
        else:
            os.mkdir(self.root + "/usr")
            os.rmdir(self.root + "/lib64")
            for link in ("bin", "lib", "lib64"):
                os.symlink("usr/" + link, self.root + "/" + link)

    def overlay_jdk(self):
        """A copy of the JDK, from which the test may remove files."""
        layers = self.dir + "/layers"
        os.mkdir(layers)
        self.mount("-t", "tmpfs", "tmpfs", layers)
        for name in ("upper", "work", "jdk"):
            os.mkdir(layers + "/" + name)
            os.chmod(layers + "/" + name, 0o755)
        self.mount("-t", "overlay", "overlay", "-o",
                   "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (self.jdk.home, layers, layers), layers + "/jdk")
        if self.libjvm_date:
            os.utime(layers + "/jdk" + self.jdk.libjvm(), (self.libjvm_date, self.libjvm_date))
        if self.launcher != "java":
            shutil.copy(self.jdk.home + "/bin/java", layers + "/jdk/bin/" + self.launcher)

    def idmapped_volume(self):
        """A directory of the host's root that the container's root sees as its own."""
        source, volume = self.dir + "/source", self.dir + "/volume"
        for path in (source, volume):
            os.mkdir(path)
        os.chmod(source, 0o1777)
        idmap.mount(source, volume, USERNS_FIRST)
        self.mounted.append(volume)
        return volume

    def mount(self, *args):
        subprocess.run(["mount", *args], check=True)
        self.mounted.append(args[-1])

    def host_uid(self):
        return {"root": 0, "uid1000": 1000, "userns": USERNS_FIRST + 1000}[self.user]

    # ---- its config.json --------------------------------------------------------------------------------

    def jdk_mounts(self):
        """([mount], java home inside)"""
        if self.own_jdk:
            return [bind(self.dir + "/layers/jdk", "/jdk", ["bind", "rw"])], "/jdk"
        if self.jdk.inside == "/jdk" or self.kind == "distroless":
            return [bind(self.jdk.home, self.jdk.inside)], self.jdk.inside
        return [], self.jdk.inside

    def mounts(self):
        jdk, home = self.jdk_mounts()
        out = [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                "options": ["nosuid", "mode=755", "size=64k"]}]
        if self.kind == "distroless" and not self.jdk.musl:
            out.append(bind(self.jdk.libraries(), "/lib/x86_64-linux-gnu"))
        elif not self.jdk.musl:
            out.append(bind(self.jdk.sysroot + "/usr", "/usr"))
            if os.path.exists(self.jdk.sysroot + "/etc/ld.so.cache"):
                out.append(bind(self.jdk.sysroot + "/etc/ld.so.cache", "/etc/ld.so.cache"))
        out += self.jdk.etc() + jdk
        if self.kind == "readonly":
            out.append(tmpfs("/tmp"))
        elif self.kind == "noexec":
            out.append(tmpfs("/tmp", "noexec"))
        elif self.kind == "small":
            out.append(tmpfs("/tmp", size="1m"))
        elif self.kind == "cgroupns":
            out.append({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
                        "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]})
        elif self.kind == "idmapped":
            out.append(bind(self.idmapped_volume(), "/tmp", ["bind", "rw"]))
        if self.tmp:
            out.append(bind(self.tmp, "/tmp", ["bind", "rw"]))
        return out, home

    def make_mountpoints(self, mounts):
        """The root of a user namespace cannot make device nodes; and everything except the application's files
        belongs to that root."""
        for m in mounts:
            path = self.root + m["destination"]
            if "bind" in m.get("options", ()) and os.path.isfile(m["source"]):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "a").close()
            else:
                os.makedirs(path, exist_ok=True)
        owner = USERNS_FIRST if self.user == "userns" else 0
        for base, dirs, files in os.walk(self.root):
            for name in dirs + files:
                os.chown(os.path.join(base, name), owner, owner, follow_symlinks=False)
        os.chown(self.root, owner, owner)
        os.chown(self.root + "/app", self.host_uid(), self.host_uid())
        if self.kind == "fsgroup":
            os.chown(self.root + "/tmp", owner, owner + GROUP)
            os.chmod(self.root + "/tmp", 0o1770)

    def seccomp(self):
        rules = []
        if self.kind == "hardened":
            rules.append({"names": REFUSED_CALLS, "action": "SCMP_ACT_ERRNO"})
        if self.kill_calls:
            rules.append({"names": self.kill_calls, "action": "SCMP_ACT_KILL_PROCESS"})
        return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": rules}

    def write_config(self, options, env, main):
        mounts, home = self.mounts()
        self.make_mountpoints(mounts)
        common = ["-Xmx32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options]
        if self.launcher == "embed_jvm":
            shutil.copy(BUILD + "/tests/embed_jvm", self.root + "/app/server")
            args = ["/app/server", home + self.jdk.libjvm(), "/app", main, *common]
        elif self.launcher == "churns":
            shutil.copy(BUILD + "/tests/churns", self.root + "/app/server")
            args = ["/app/server", main, home + self.jdk.libjvm()]
        elif self.launcher in ("fake_jvm", "strangers"):
            shutil.copy(BUILD + "/tests/" + self.launcher, self.root + "/app/server")
            args = ["/app/server", main]
        else:
            args = [home + "/bin/" + self.launcher, *common, "-cp", "/app", main]
        uid = 0 if self.user == "root" else 1000
        caps = DOCKER_CAPS if self.user == "root" and self.kind != "hardened" else []
        namespaces = ["pid", "mount", "network", "ipc", "uts"] + (["cgroup"] if self.kind == "cgroupns" else [])
        linux = {"namespaces": [{"type": t} for t in namespaces],
                 "resources": {"memory": {"limit": 512 << 20}, "pids": {"limit": self.pids}},
                 "maskedPaths": ["/proc/kcore", "/proc/keys"],
                 "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"]}
        if self.cpus:
            linux["resources"]["cpu"] = {"period": 100000, "quota": int(100000 * self.cpus)}
        if self.kind == "hardened" or self.kill_calls:
            linux["seccomp"] = self.seccomp()
        if self.user == "userns":
            linux["namespaces"].append({"type": "user"})
            ids = [{"containerID": 0, "hostID": USERNS_FIRST, "size": 65536}]
            linux.update(uidMappings=ids, gidMappings=ids)
        config = {
            "ociVersion": "1.0.2",
            "process": {"terminal": False, "args": args, "env": ["PATH=/usr/bin", "HOME=/tmp", MARK, *env], "cwd": "/app",
                        "user": {"uid": uid, "gid": uid, "additionalGids": [GROUP] if uid else []},
                        "noNewPrivileges": self.kind == "hardened" or uid != 0,
                        "capabilities": {k: caps for k in ("bounding", "effective", "permitted")}},
            "root": {"path": self.root, "readonly": self.kind in ("readonly", "noexec", "sealed", "covered")},
            "hostname": "cell", "mounts": mounts, "linux": linux}
        self.bundle = self.engine.put(config) if self.engine else self.dir
        with open(self.bundle + "/config.json", "w") as f:
            json.dump(config, f, indent=1)

    # ---- its life ---------------------------------------------------------------------------------------

    def call(self, *words, **more):
        words = [self.runtime, *words]
        if self.runtime == "crun":  # crun refuses a unified hierarchy beside the others, so it gets a view without that one
            words = ["unshare", "-m", "sh", "-c", "mount --make-rprivate / && "
                     "{ ! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified; } && exec \"$@\"",
                     "sh", *words]
        return subprocess.run(words, stdin=subprocess.DEVNULL, **more)

    def up(self):
        with open(self.dir + "/out", "wb") as out, open(self.dir + "/err", "wb") as err:
            done = self.call("run", "-d", "--pid-file", self.dir + "/pid", "--bundle", self.bundle, self.name,
                             stdout=out, stderr=err)
        if done.returncode != 0:
            raise AssertionError("%s: %s" % (self.runtime, self.output()[1][-500:]))
        with open(self.dir + "/pid") as f:
            self.pid = int(f.read())
        with open("/proc/%d/stat" % self.pid) as f:
            self.start_time = int(f.read().rsplit(")", 1)[1].split()[19])
        wait_for("the JVM: %r" % (self.output(),), lambda: b"line 1\n" in self.raw("out") or not self.alive(), 30)
        if not self.alive():
            raise AssertionError("the JVM ended: %r" % (self.output(),))

    def down(self):
        if self.pid:
            self.call("delete", "--force", self.name, stderr=subprocess.DEVNULL)
        for where in reversed(self.mounted):
            subprocess.run(["umount", "-l", where])
        self.mounted = []
        if self.engine:
            self.engine.take_away()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if kind and not self.alive():
            self.tell_of_end()
        self.down()

    def tell_of_end(self):
        """Information about a JVM that ended during the test: its last output, and the file that HotSpot writes."""
        files = [path for where in ("/app", "/tmp") for path in glob.glob(self.root + where + "/hs_err*")]
        for path in files + [self.dir + "/out", self.dir + "/err"]:
            with open(path, errors="replace") as f:
                text = f.read()
            print("JVM %d has ended; %s:\n%s" % (self.pid, os.path.basename(path), text[:12000] if path in files else text[-3000:]),
                  file=sys.stderr)

    def alive(self):
        try:
            with open("/proc/%d/stat" % self.pid) as f:
                return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)

    def raw(self, name):
        with open(self.dir + "/" + name, "rb") as f:
            return f.read()

    def output(self):
        return self.raw("out").decode(errors="replace"), self.raw("err").decode(errors="replace")

    def inside(self, path):
        """The host's path of a file in the container, without following the container's links."""
        return "/proc/%d/root%s" % (self.pid, path)

    def tmp_dir(self):
        return self.inside("/scratch/tmp" if self.kind == "symlinks" else "/tmp")

    def cgroup(self, controller):
        """Its directory in a v1 hierarchy."""
        with open("/proc/%d/cgroup" % self.pid) as f:
            for line in f:
                _, names, path = line.strip().split(":", 2)
                if controller in names.split(","):
                    return "/sys/fs/cgroup/%s%s" % (names, path)
        raise AssertionError("no cgroup of %s" % controller)

    # ---- what must not change ---------------------------------------------------------------------------

    def tree(self):
        """All files in the container that are its own, with owner, mode and content, and its mounts."""
        found = {}
        top = self.inside("/")
        for base, dirs, files in os.walk(top):
            here = base[len(top):]
            if not here:
                dirs[:] = [d for d in dirs if d not in ("proc", "sys", "usr", "jdk", "dev")]
            dirs[:] = [d for d in dirs if not d.startswith("hsperfdata")]
            for name in dirs + files:
                if not name.startswith((".java_pid", "hsperfdata")):
                    found[os.path.join(here, name)] = self.look(os.path.join(base, name))
        with open("/proc/%d/mountinfo" % self.pid) as f:
            found["mounts"] = [line.split(" ", 1)[1] for line in f]
        return found

    @staticmethod
    def look(path):
        s = os.lstat(path)
        content = ""
        if os.path.isfile(path) and not os.path.islink(path) and s.st_size < 4 << 20:
            with open(path, "rb") as f:
                content = hashlib.sha1(f.read()).hexdigest()
        return oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink if not os.path.isdir(path) else 0, content

    def kept_lines(self):
        """The JVM's own output when it starts, for stdout and stderr."""
        return {name: {line for line in self.raw(name).decode(errors="replace").splitlines()
                       if not line.startswith(word)} for name, word in WORDS.items()}

    def check_output(self, kept):
        """Both outputs must be @kept followed by the workload's numbered lines without a gap, and nothing else."""
        for name, word in WORDS.items():
            text = self.raw(name).decode(errors="replace")
            text = text[:text.rfind("\n") + 1]  # the last line may be incomplete
            lines = [line for line in text.splitlines() if line not in kept[name]]
            expected = ["%s %d" % (word, i) for i in range(len(lines))]
            if lines != expected:
                strange = [line for line in lines if line not in expected]
                raise AssertionError("%d lines too many in its %s: %r" % (len(strange), name, strange[:4]))
