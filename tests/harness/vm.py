"""Runs a program as root under another kernel, in QEMU without KVM, with this machine's own root read-only below a
tmpfs. Kernels are packages of Debian and Ubuntu, the newest of each line, kept in the cache (KINDLING_CACHE). None
is installed."""
import glob
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile
import urllib.request

from jdks import cache_dir

DEBIAN, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
GENERIC = r"linux-(image-unsigned|modules)-%s\.0-\d+-generic"
# kernel line: archive, suite, names of its packages
KERNELS = {
    "4.15": (UBUNTU, "bionic", GENERIC % r"4\.15"),
    "5.4": (UBUNTU, "focal", GENERIC % r"5\.4"),
    "5.10": (SECURITY, "bullseye-security", r"linux-image-5\.10\.0-\d+-amd64-unsigned"),
    "5.15": (UBUNTU, "jammy-updates", GENERIC % r"5\.15"),
    "6.1": (DEBIAN, "bookworm", r"linux-image-6\.1\.0-\d+-amd64-unsigned"),
    "6.5": (UBUNTU, "jammy-updates", GENERIC % r"6\.5"),
    "6.8": (UBUNTU, "noble-updates", GENERIC % r"6\.8"),
    "6.12": (DEBIAN, "trixie", r"linux-image-6\.12\.\d+\+deb13-amd64-unsigned"),
    "6.14": (UBUNTU, "noble-updates", GENERIC % r"6\.14"),
    "6.17": (UBUNTU, "noble-updates", GENERIC % r"6\.17"),
    "7": (DEBIAN, "trixie-backports", r"linux-(binary|modules)-7\.[\d.]+\+deb13-amd64"),
}
# in the order of their dependencies; a part that a kernel has built in has no file
MODULES = ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "netfs", "fscache", "9pnet",
           "9pnet_virtio", "9p", "overlay")
UNPACK = {".xz": lzma.decompress, ".gz": gzip.decompress}
MEMORY = "3G"
LOADER = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for m in /modules/*; do $b insmod $m || echo "insmod $m failed"; done
$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 root /low
$b mount -t tmpfs -o size=60% rw /rw
$b mkdir /rw/upper /rw/work
$b mount -t overlay -o lowerdir=/low,upperdir=/rw/upper,workdir=/rw/work overlay /new
$b mount -t proc proc /new/proc
$b mount -t sysfs sys /new/sys
$b mount -t devtmpfs dev /new/dev
$b mkdir -p /new/dev/shm /new/dev/pts
$b mount -t tmpfs shm /new/dev/shm
$b mount -t devpts pts /new/dev/pts
$b mount -t securityfs security /new/sys/kernel/security
$b mount -t tracefs tracing /new/sys/kernel/tracing
$b mount -t cgroup2 cgroup /new/sys/fs/cgroup
$b mount -t tmpfs -o mode=755 run /new/run
$b mount -t tmpfs -o mode=1777 tmp /new/tmp
$b cp /program /new/run/program
exec $b switch_root /new /bin/sh /run/program
"""
# the first process, which also waits for orphans
PROGRAM = """export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
cd %s
ip link set lo up 2>/dev/null
{ %s
} </dev/null >/dev/ttyS1 2>&1
echo "exit status: $?" >/dev/ttyS1
sync
echo o >/proc/sysrq-trigger
while :; do :; done
"""


# ---- kernels ----------------------------------------------------------------------------------------------


def version_key(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def packages(archive, suite):
    """All paragraphs of the suite's index."""
    with urllib.request.urlopen("%s/dists/%s/main/binary-amd64/Packages.xz" % (archive, suite), timeout=120) as f:
        text = lzma.decompress(f.read()).decode(errors="replace")
    for paragraph in text.split("\n\n"):
        yield dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.M))


def download(archive, package, directory):
    """Fetches the file of a package by its paragraph @package; returns the file's path."""
    path = os.path.join(directory, os.path.basename(package["Filename"]))
    with urllib.request.urlopen(archive + "/" + package["Filename"], timeout=600) as f, open(path, "wb") as out:
        shutil.copyfileobj(f, out)
    with open(path, "rb") as f:
        if hashlib.file_digest(f, "sha256").hexdigest() != package["SHA256"]:
            raise OSError("%s: another checksum than the index says" % path)
    return path


def unpacked(path):
    """The content of a module, which may be compressed."""
    end = os.path.splitext(path)[1]
    if end == ".zst":
        return subprocess.run(["zstd", "-dqc", path], check=True, capture_output=True).stdout
    with open(path, "rb") as f:
        content = f.read()
    return UNPACK[end](content) if end in UNPACK else content


def modules(tree):
    """[content] of those MODULES that are in @tree, in that order."""
    for name in MODULES:
        for path in glob.glob("%s/**/%s.ko*" % (tree, name), recursive=True):
            yield name, unpacked(path)


def fetch(line):
    """The directory with vmlinuz and initrd of the newest kernel of this line; fetched once."""
    home = os.path.join(cache_dir(), "kernel-" + line)
    if os.path.exists(home + "/complete"):
        return home
    archive, suite, names = KERNELS[line]
    found = [p for p in packages(archive, suite) if re.fullmatch(names, p.get("Package", ""))]
    newest = max(version_key(p["Version"]) for p in found)
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    with tempfile.TemporaryDirectory(dir=home) as tree:
        for package in found:
            if version_key(package["Version"]) == newest:
                subprocess.run(["dpkg-deb", "-x", download(archive, package, tree), tree], check=True)
        shutil.copy(glob.glob(tree + "/**/vmlinuz*", recursive=True)[0], home + "/vmlinuz")
        os.makedirs(home + "/modules")
        for i, (name, content) in enumerate(modules(tree)):
            with open("%s/modules/%02d-%s.ko" % (home, i, name), "wb") as f:
                f.write(content)
    open(home + "/complete", "w").close()
    return home


# ---- a machine -----------------------------------------------------------------------------------------------


def archive_entry(name, mode, content=b"", device=(0, 0)):
    """One entry of a newc cpio archive (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel)."""
    head = b"070701" + b"".join(b"%08X" % n for n in (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0))
    text = head + name.encode() + b"\0"
    return text + b"\0" * (-len(text) % 4) + content + b"\0" * (-len(content) % 4)


def initrd(home, program):
    out = [archive_entry(d, stat.S_IFDIR | 0o755) for d in ("bin", "dev", "proc", "low", "rw", "new", "modules")]
    out += [archive_entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))]
    for name, mode, content in [("init", 0o755, LOADER.encode()), ("program", 0o644, program.encode())]:
        out.append(archive_entry(name, stat.S_IFREG | mode, content))
    for path, name in [("/bin/busybox", "bin/busybox")] + [(p, "modules/" + os.path.basename(p))
                                                         for p in sorted(glob.glob(home + "/modules/*"))]:
        with open(path, "rb") as f:
            out.append(archive_entry(name, stat.S_IFREG | 0o755, f.read()))
    return b"".join(out) + archive_entry("TRAILER!!!", 0)


def run(line, words, directory, seconds, threads="multi"):
    """Runs @words, a shell's line, in @directory under the kernel of this line.

    @threads: "multi" is faster, but a CPU may execute an instruction that another one has just replaced, as kernels
    replace theirs when a tracepoint is switched on; then the kernel panics, or executes it for ever (6.1, often). "single"
    cannot.
    (what it wrote, the kernel's messages); ends the machine after so many seconds."""
    home = fetch(line)
    with tempfile.TemporaryDirectory(prefix="kindling-vm-") as own:
        with open(own + "/initrd", "wb") as f:
            f.write(initrd(home, PROGRAM % (directory, words)))
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=" + threads, "-cpu", "max", "-smp", "2", "-m", MEMORY, "-nodefaults",
                   "-display", "none", "-no-reboot", "-kernel", home + "/vmlinuz", "-initrd", own + "/initrd",
                   "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog",
                   "-serial", "file:" + own + "/console", "-serial", "file:" + own + "/out",
                   "-fsdev", "local,id=root,path=/,security_model=passthrough,readonly=on,multidevs=remap",
                   "-device", "virtio-9p-pci,fsdev=root,mount_tag=root", "-device", "virtio-rng-pci"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        texts = []
        for name in ("out", "console"):
            with open(own + "/" + name, errors="replace") as f:
                texts.append(f.read().replace("\r", ""))
        return tuple(texts)


if __name__ == "__main__":
    import sys
    out, console = run(sys.argv[1], sys.argv[2], os.getcwd(), float(sys.argv[3]) if len(sys.argv) > 3 else 600)
    print(console, "\n----\n", out, sep="")
