"""The packages as users get them: the .deb installed on a fresh Debian 12, used and purged; the rpm installed and
removed; the image as a container beside a JVM; the bill of materials; and that a second build gives the same
bytes. packages.py: all of that. packages.py --trixie: the .deb on Debian 13. packages.py --twice: two whole builds
in different directories give the same bytes. Needs root, mmdebstrap, rpm, runc."""
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import packaged  # noqa: E402
from kindling import BUILD, HERE, Daemon, Jvm, accounts_balance, timed_wait, wait_for  # noqa: E402
from systemd import Systemd  # noqa: E402

TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
PROGRAMS = ("/usr/sbin/kindlingd", "/usr/bin/kindling", "/usr/bin/kindling-inject", "/usr/bin/kindling-look",
            "/usr/bin/kindling-symbols", "/usr/bin/kindling-upload", "/usr/bin/kindling-names")
# files that apt and dpkg keep of every package that was ever installed
KEPT = re.compile(r"^(/var/(cache|log|lib/apt)/.*|/var/lib/(dpkg|systemd/deb-systemd-helper-.*)/.*|/etc/(passwd|group|g?shadow)-)$")
ACCOUNT = re.compile(r"^kindling", re.M)
# runs the daemon in a root: @1 is that root; the following words start the program, the first being the build tree's,
# which is replaced; the test's directory is visible there too
RUN_IN_ROOT = """
mount --make-rprivate / && mount --rbind "$1" "$1"
dir=$(dirname "$4") && mkdir -p "$1$dir" && mount --bind "$dir" "$1$dir"
cd "$1" && for d in proc dev sys; do mount --rbind /$d $d; done
mount -t tmpfs run run
file=$4 && pivot_root . mnt && cd / && umount -l mnt
exec /usr/sbin/kindlingd --config "$file"
"""
# the capabilities of the unit, whose comments give the reason for each
UNIT = os.path.join(TOP, "deploy", "systemd", "kindlingd.service")


def capabilities():
    with open(UNIT) as f:
        words = re.search(r"^CapabilityBoundingSet=(.+)$", f.read(), re.M).group(1).split()
    return [w for w in words if w != "CAP_SYS_RESOURCE"]  # for larger pipes; machines that run tests may not allow it


def inside(root, *words):
    """The output of @words in the root."""
    done = subprocess.run(packaged.command(root, *words), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError("%s: %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
    return done.stdout


def install_deb(root):
    """What apt says."""
    shutil.copy(packaged.one(".deb"), root + "/kindling.deb")
    said = inside(root, "apt-get", "install", "-y", "--no-install-recommends", "/kindling.deb")
    os.remove(root + "/kindling.deb")
    return said


def running():
    """{pid: program} of kindling's processes that did not exist before."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found[int(pid)] = os.readlink("/proc/%s/exe" % pid)
        except OSError:
            pass
    return found


JVM = """[Service]
ExecStart=/opt/jdk/bin/java -Xmx32m -XX:+UseSerialGC -cp /opt/kindling-test/classes Service
Environment=KINDLING_TEST=%s
"""
# files of `cmake --install` for other tests, and a policy that packages may start nothing
UNINSTALL = """rm -rf /usr/sbin/policy-rc.d /etc/kindling /usr/lib/kindling /usr/sbin/kindlingd /usr/bin/kindling /usr/bin/kindling-*
rm -f /usr/lib/systemd/system/kindling* /usr/lib/sysusers.d/kindling.conf
systemctl daemon-reload"""
LEFT = """for path in /etc/kindling /var/lib/kindling /run/kindling* /tmp/kindling /usr/lib/kindling \
	/etc/systemd/system/*/kindling*; do [ ! -e "$path" ] || echo "$path"; done
pgrep kindling || true; grep ^kindling /etc/passwd /etc/group || true; awk '$2 ~ /kindling/' /proc/mounts"""


class ImageDaemon(Daemon):
    """Runs the image in a container that sees the host's processes and has one directory of it."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="kindling-image-")
        self.image = packaged.unpack_image(self.root + "/rootfs")["config"]
        self.name = "kindling-image-%d" % os.getpid()
        super().__init__(wrap=("sh", "-c", 'exec runc run --bundle "$1" "$2"', "sh", self.root, self.name))

    def start(self):
        caps = capabilities()
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro", "nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": self.dir, "type": "none", "source": self.dir, "options": ["bind", "rw"]}]
        config = {
            "ociVersion": "1.0.2",
            "process": {"terminal": False, "args": [*self.image["Entrypoint"], "--config", self.config],
                        "env": self.image["Env"], "cwd": self.image["WorkingDir"], "user": {"uid": 0, "gid": 0},
                        "noNewPrivileges": True,
                        "capabilities": {k: caps for k in ("bounding", "effective", "permitted")}},
            "root": {"path": "rootfs", "readonly": True}, "hostname": "kindling", "mounts": mounts,
            "linux": {"namespaces": [{"type": t} for t in ("mount", "network", "ipc", "uts")]}}
        with open(self.root + "/config.json", "w") as f:
            json.dump(config, f)
        super().start()

    def inside(self, *words):
        return subprocess.run(["runc", "exec", self.name, *words], capture_output=True, text=True, check=True,
                              stdin=subprocess.DEVNULL).stdout

    def __exit__(self, *unused):
        super().__exit__(*unused)
        subprocess.run(["runc", "delete", "--force", self.name], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root)


class Case(unittest.TestCase):
    maxDiff = None

    def streams(self, daemon):
        with Jvm("17") as jvm:
            daemon.wait_state(jvm.pid, "streaming")
            wait_for("samples", lambda: daemon.target(jvm.pid)["samples"]["delivered"] > 50)
            accounts_balance(daemon.target(jvm.pid))
            # the symbols of its libraries were found, and they are the host's libraries
            wait_for("names of native functions", lambda: re.search(r"\bthread_native_entry\b", daemon.cli(
                "report", str(jvm.pid), "--last", "1m", "-o", "-", check=False).stdout))
            yield jvm
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(jvm.end(), ("END\n", ""))

    def deb(self, release, base):
        with packaged.debian(release, base) as root:
            before, ran = packaged.files(root), running()
            said = install_deb(root)
            self.assertIn("systemctl enable --now kindlingd\n", said)
            started = {exe for pid, exe in running().items() if pid not in ran and exe.startswith(root)}
            self.assertEqual(started, set())
            self.assertFalse(os.path.lexists(root + "/etc/systemd/system/multi-user.target.wants/kindlingd.service"))
            versions = {inside(root, program, "--version").split()[1] for program in PROGRAMS}
            self.assertEqual(versions, {re.search(r"kindling_(.+)_", packaged.one(".deb")).group(1)})
            with Daemon(wrap=("unshare", "--mount", "sh", "-ec", RUN_IN_ROOT, "sh", root)) as daemon:
                for _ in self.streams(daemon):
                    self.assertEqual(os.readlink("/proc/%d/exe" % daemon.process.pid), "/usr/sbin/kindlingd")
                os.rmdir(root + daemon.dir)
            # installed again, like an upgrade: a changed settings file is kept, and nothing is started
            with open(root + "/etc/kindling/kindlingd.yaml", "a") as f:
                f.write("# mine\n")
            shutil.copy(packaged.one(".deb"), root + "/kindling.deb")
            self.assertNotIn("systemctl enable", inside(root, "apt-get", "install", "-y", "--reinstall", "/kindling.deb"))
            os.remove(root + "/kindling.deb")
            with open(root + "/etc/kindling/kindlingd.yaml") as f:
                self.assertTrue(f.read().endswith("# mine\n"))
            # files that a daemon and `systemctl enable` would leave
            os.makedirs(root + "/var/lib/kindling/segments")
            inside(root, "systemctl", "enable", "kindlingd")
            self.assertTrue(os.path.lexists(root + "/etc/systemd/system/multi-user.target.wants/kindlingd.service"))
            inside(root, "apt-get", "purge", "-y", "kindling")
            self.gone(root, before)

    def gone(self, root, before):
        after = packaged.files(root)
        self.assertEqual([p for p in after if p not in before and not KEPT.match(p)], [])
        self.assertEqual([p for p in before if p not in after], [])
        for name in ("passwd", "group"):
            with open(root + "/etc/" + name) as f:
                self.assertIsNone(ACCOUNT.search(f.read()), name)
        with open("/proc/mounts") as f:
            self.assertNotIn(root, f.read())


class Packages(Case):
    def test_deb_on_debian_12(self):
        self.deb("bookworm", packaged.BASE)

    def under_systemd(self, package, install, upgrade, remove):
        """What the package does through systemctl: the root is this machine's, under an overlay. Returns what is left
        at the end, in lines."""
        with Systemd("17") as bed:
            bed.run("sh", "-c", UNINSTALL)
            shutil.copy(package, bed.root + "/opt/kindling.package")
            bed.write("/etc/systemd/system/jvm.service", JVM % os.environ["KINDLING_TEST"])
            bed.run("systemctl", "start", "jvm")
            jvm = int(bed.ask("jvm", "MainPID"))

            def streaming():
                done = bed.run("kindling", "status", "--json", check=False)
                return done.returncode == 0 and [t for t in json.loads(done.stdout)["targets"]
                                                 if (t["pid"], t["state"]) == (jvm, "streaming")]
            self.assertIn("systemctl enable --now kindlingd\n", bed.run(*install, "/opt/kindling.package").stdout)
            self.assertEqual(bed.ask("kindlingd", "ActiveState"), "inactive")
            bed.run("systemctl", "enable", "--now", "kindlingd")
            print("\n  %.1f s from systemctl start's end to a stream" % timed_wait("a stream", streaming)[1])
            first = bed.ask("kindlingd", "MainPID")
            with open("%s/proc/%s/status" % (bed.root, bed.run("pgrep", "-P", first, "kindlingd").stdout.split()[0])) as f:
                uid = re.search(r"^Uid:\s+(\d+)", f.read(), re.M).group(1)
            self.assertEqual(uid, bed.run("id", "-u", "kindling").stdout.strip())
            bed.run(*upgrade, "/opt/kindling.package")
            self.assertNotIn(bed.ask("kindlingd", "MainPID"), (first, "0"))
            wait_for("a stream", streaming)
            bed.run(*remove, "kindling")
            self.assertEqual((bed.ask("jvm", "MainPID"), bed.ask("jvm", "NRestarts")), (str(jvm), "0"))
            return bed.run("sh", "-c", LEFT).stdout.split("\n")[:-1]

    def test_deb_under_systemd(self):
        self.assertEqual(self.under_systemd(packaged.one(".deb"), ("dpkg", "--install"), ("dpkg", "--install"), ("dpkg", "--purge")), [])

    def test_rpm_under_systemd(self):
        """Installs the rpm on Debian, with rpm's own database. rpm has no purge: settings, history and accounts stay."""
        rpm = ("rpm", "--nodeps", "--dbpath", "/opt/rpm")
        left = self.under_systemd(packaged.one(".rpm"), (*rpm, "--install"), (*rpm, "--upgrade", "--replacepkgs"), (*rpm, "--erase"))
        accounts = [line for line in left if re.match(r"/etc/(passwd|group):kindling(-look|-symbols|-upload|-names)?:", line)]
        self.assertEqual(len(accounts), 10)
        self.assertLessEqual(set(left) - set(accounts), {"/etc/kindling", "/var/lib/kindling"})

    def test_rpm_in_an_empty_root(self):
        """The installed files, their owners and modes; changed settings are kept."""
        rpm = packaged.one(".rpm")
        with tempfile.TemporaryDirectory(prefix="kindling-rpm-") as root:
            def run(*words):
                return subprocess.run(["rpm", "--root", root, *words], capture_output=True, text=True, check=True).stdout
            run("--nodeps", "--noscripts", "--install", rpm)
            self.assertEqual(run("--verify", "--nodeps", "kindling"), "")
            self.assertEqual(run("--query", "--configfiles", "kindling"), "/etc/kindling/kindlingd.yaml\n")
            for path in packaged.files(root):
                st = os.lstat(root + path)
                if not path.startswith("/var/lib/rpm"):
                    self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode) & (0o6000 | (0 if stat.S_ISLNK(st.st_mode) else 0o22))),
                                     (0, 0, 0), path)
            with open(root + "/etc/kindling/kindlingd.yaml", "a") as f:
                f.write("# mine\n")
            run("--nodeps", "--noscripts", "--upgrade", "--replacepkgs", rpm)
            with open(root + "/etc/kindling/kindlingd.yaml") as f:
                self.assertTrue(f.read().endswith("# mine\n"))
            run("--noscripts", "--erase", "kindling")
            self.assertEqual([p for p in packaged.files(root) if "kindling" in p and not p.endswith(".rpmsave")], ["/etc/kindling"])

    def test_rpm(self):
        rpm = packaged.one(".rpm")
        with packaged.debian("bookworm") as root:
            before = packaged.files(root)
            done = subprocess.run(["rpm", "--root", root, "--nodeps", "--install", rpm], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Creating user 'kindling'", done.stderr)
            self.assertIn("systemctl enable --now kindlingd\n", done.stdout)
            for program in PROGRAMS:
                libraries = re.findall(r"=> (/\S+)", inside(root, "ldd", program))
                others = [p for p in map(os.path.normpath, libraries) if not p.startswith("/usr/lib/kindling/shared/")]
                self.assertLessEqual({os.path.basename(p) for p in others},
                                     {"libc.so.6", "libm.so.6", "libresolv.so.2"}, program)
                inside(root, program, "--version")
            subprocess.run(["rpm", "--root", root, "--erase", "kindling"], check=True, capture_output=True)
            mine = [p for p in packaged.files(root) if p not in before]
            self.assertEqual([p for p in mine if "kindling" in p], [])

    def test_image(self):
        with ImageDaemon() as daemon:
            size = sum(os.lstat(os.path.join(d, n)).st_size for d, _, names in os.walk(daemon.root) for n in names)
            print("image: %.1f MB unpacked, %.1f MB packed" % (size / 1e6, os.path.getsize(packaged.one("-oci.tar")) / 1e6))
            self.assertLess(size, 60e6)
            for jvm in self.streams(daemon):
                rows = json.loads(daemon.inside("kindling", "--socket", daemon.socket, "status", "--json"))["targets"]
                self.assertIn((jvm.pid, "streaming"), [(row["pid"], row["state"]) for row in rows])

    def test_bill_of_materials(self):
        with open(packaged.one(".cdx.json")) as f:
            bom = json.load(f)
        self.assertEqual((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.5"))
        named = {}
        for part in [bom["metadata"]["component"], *bom["components"]]:
            self.assertTrue(part["version"] and part["licenses"][0]["expression"], part["name"])
            named.update((f["name"], f["hashes"][0]["content"]) for f in part["components"])
        with tempfile.TemporaryDirectory(prefix="kindling-image-") as root:
            packaged.unpack_image(root)
            for path, kind in packaged.files(root).items():
                if kind == "100000" and not path.startswith(("/etc/", "/usr/share/doc/")):
                    with open(root + path, "rb") as f:
                        digest = hashlib.sha256(f.read()).hexdigest()
                    found = named.get(path[1:]) or named.get(os.path.basename(path)) or named.get(path.replace("/usr/", "/", 1))
                    self.assertEqual(found, digest, path)

    def test_same_bytes_and_sums(self):
        with tempfile.TemporaryDirectory(prefix="kindling-again-") as other:
            subprocess.run([sys.executable, TOP + "/deploy/packages/packages.py", "--build", BUILD, "--version",
                            re.search(r"kindling_(.+)_", packaged.one(".deb")).group(1), "--libdir", "lib", "--cc", "gcc",
                            "--strip", "strip", "--out", other + "/out"], check=True, stdout=subprocess.DEVNULL,
                           preexec_fn=lambda: os.umask(0o077),
                           env={**os.environ, "TMPDIR": other, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
            compare(self, packaged.OUT, other + "/out")


def compare(test, one, other):
    def sums(directory):
        found = {}
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
        return found
    expected = sums(one)
    test.assertEqual(expected, sums(other))
    with open(one + "/SHA256SUMS") as f:
        told = dict(reversed(line.split()) for line in f)
    test.assertEqual(told, {name: digest for name, digest in expected.items() if name != "SHA256SUMS"})


class Trixie(Case):
    def test_deb_on_debian_13(self):
        self.deb("trixie", packaged.BASE.replace("libcurl4", "libcurl4t64").replace("libelf1", "libelf1t64").replace(
            "libmicrohttpd12", "libmicrohttpd12t64"))


class Twice(Case):
    def test_two_builds(self):
        """Both builds start from copies made at the same time, so later edits are in neither."""
        env = {k: v for k, v in os.environ.items() if "CCACHE" not in k and k != "CMAKE_C_COMPILER_LAUNCHER"}
        with tempfile.TemporaryDirectory(prefix="kindling-twice-") as work:
            first, second = work + "/a", work + "/of-another-length/b"
            os.makedirs(first)
            tar = subprocess.Popen(["tar", "-C", TOP, "-c", "--exclude=./build", "--exclude=./.git", "."], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-C", first, "-x"], stdin=tar.stdout, check=True)
            self.assertEqual(tar.wait(), 0)
            shutil.copytree(first, second, symlinks=True)
            for place in first, second:
                for words in (["--preset", "release"], ["--build", "--preset", "release", "--target", "packages"]):
                    done = subprocess.run(["cmake", *words], cwd=place, env=env, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
            compare(self, first + "/build/release/packages", second + "/build/release/packages")


if __name__ == "__main__":
    if os.geteuid() != 0 or not all(map(shutil.which, ("mmdebstrap", "rpm", "runc"))):
        from kindling import skip
        skip("needs root, mmdebstrap, rpm and runc")
    case = {"--trixie": Trixie, "--twice": Twice}.get(sys.argv[1] if len(sys.argv) > 1 else "", Packages)
    if case is not Twice:
        packaged.build()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
