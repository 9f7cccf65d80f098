"""A systemd for one test: systemd-nspawn boots it as process 1 of a container whose root is this machine's, under an
overlay that keeps all writes. It has all capabilities, as on a host, and no seccomp filter (SYSTEMD_SECCOMP=0),
because every process would inherit nspawn's own filter and could then not read those of others. Its processes are
in a pid namespace of their own. Needs root, systemd-container and systemd."""
import os
import shutil
import signal
import subprocess
import tempfile

from kindling import BUILD, classes, java_home, skip, wait_for

# the minimum for a boot, without services of the machine
TARGET = """[Unit]
Requires=sysinit.target
After=sysinit.target
AllowIsolate=yes
"""
MASKED = ["systemd-%s.service" % name for name in ("sysctl", "modules-load", "timesyncd", "udevd", "udev-trigger", "journal-flush",
                                                   "update-utmp", "pstore", "networkd")]
MASKED += ["kmod-static-nodes.service", "ldconfig.service", "sys-kernel-debug.mount", "sys-kernel-tracing.mount"]
# $1: the directory, $2: a JDK, the rest: more words for nspawn
BOOT = """mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work none "$1/root"
cd "$1/root" && rm -rf var/lib/kindling etc/kindling var/log/journal etc/machine-id && touch etc/machine-id
echo "$TARGET" >etc/systemd/system/kindling-test.target
for unit in $MASKED; do ln -sf /dev/null etc/systemd/system/$unit; done
mkdir -p opt/kindling-test etc/kindling && cp -r "$CLASSES" opt/kindling-test/classes
cmake --install "$BUILD" --prefix "$1/root/usr" >/dev/null
cp "$DEPLOY/kindlingd.yaml" etc/kindling
exec systemd-nspawn -q -D "$1/root" -M host-$$ --register=no --keep-unit --private-network --capability=all \
	--bind-ro="$2:/opt/jdk" --boot systemd.unit=kindling-test.target systemd.show_status=0
"""
DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")


class Systemd:
    def __init__(self, major):
        if not shutil.which("systemd-nspawn"):
            skip("a systemd of its own needs systemd-nspawn (apt-get install systemd-container)")
        self.dir = tempfile.mkdtemp(prefix="kindling-systemd-")
        os.chmod(self.dir, 0o755)
        self.log = open(self.dir + ".log", "w+")
        environment = {**os.environ, "SYSTEMD_SECCOMP": "0", "TARGET": TARGET, "MASKED": " ".join(MASKED), "CLASSES": classes(),
                       "BUILD": os.path.realpath(BUILD), "DEPLOY": os.path.realpath(DEPLOY)}
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-ec", BOOT, "sh", self.dir, os.path.realpath(java_home(major))],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment)
        try:
            self.pid = wait_for("process 1", self.first, 30)
            self.root = "/proc/%d/root" % self.pid
            wait_for("a booted systemd", self.is_up, 60)
        except AssertionError as e:
            said = self.said()
            self.end()
            raise AssertionError("%s: %s" % (e, said)) from None

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def first(self):
        """The container's process 1, as the host numbers it."""
        if self.process.poll() is not None:
            raise AssertionError("systemd-nspawn has ended")
        try:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
                for child in map(int, f.read().split()):
                    with open("/proc/%d/comm" % child) as comm:
                        if comm.read() == "systemd\n":
                            return child
        except (FileNotFoundError, ProcessLookupError):
            pass
        return None

    def is_up(self):
        return self.run("systemctl", "is-active", "kindling-test.target", check=False).returncode == 0

    def run(self, *words, check=True, timeout=90):
        done = subprocess.run(["nsenter", "--all", "--target", str(self.pid), *words], capture_output=True, text=True, timeout=timeout,
                              env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        if check and done.returncode != 0:
            raise AssertionError("%s: %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
        return done

    def ask(self, unit, name):
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def write(self, path, text):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def read(self, path):
        with open(self.root + path) as f:
            return f.read()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).stdout

    def end(self):
        """SIGKILL to process 1 of a pid namespace ends all of its processes."""
        if self.process.poll() is None:
            first = self.first()
            if first:
                os.kill(first, signal.SIGKILL)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        os.unlink(self.dir + ".log")
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()
