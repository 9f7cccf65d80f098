"""The installed tree: the output of `cmake --install`, stripped, below usr, and the shared libraries that the
programs need besides glibc."""
import glob
import os
import re
import shutil
import subprocess

PROGRAMS = ("sbin/kindlingd", "bin/kindling", "bin/kindling-inject", "bin/kindling-look", "bin/kindling-symbols",
            "bin/kindling-upload", "bin/kindling-names")
# libraries that come from the system in every package except the image, which has no system: the loader and glibc
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util)\.so\.\d+)$")
NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[([^]]+)\]")
LOADED = re.compile(r"^\s*(\S+) => (/\S+) \(", re.M)


def run(*words, **options):
    """What it prints."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def files_of(top):
    """Paths of all files and links below @top, relative and sorted, so that the file system's order does not matter."""
    found = []
    for directory, dirs, names in os.walk(top):
        links = [d for d in dirs if os.path.islink(os.path.join(directory, d))]
        found += [os.path.relpath(os.path.join(directory, n), top) for n in names + links]
    return sorted(found)


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def settle(top, epoch):
    """Sets the modes that all distributions use, whatever the umask was, and one date."""
    for directory, dirs, names in os.walk(top, topdown=False):
        for name in names + dirs:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                runs = os.path.isdir(path) or os.access(path, os.X_OK) and not name.endswith(".so")
                os.chmod(path, 0o755 if runs and ".so." not in name else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
    os.chmod(top, 0o755)
    os.utime(top, (epoch, epoch))


def install(settings, root):
    """The files below @root: usr and etc."""
    run("cmake", "--install", settings.build, "--prefix", root + "/usr")
    os.rename(root + "/usr/etc", root + "/etc")
    agent = "%s/kindling/libkindling.so" % settings.libdir
    for name in (*PROGRAMS, agent):
        run(settings.strip, "--strip-unneeded", "--remove-section=.comment", os.path.join(root, "usr", name))
    for page in glob.glob(root + "/usr/share/man/man*/*.[1-8]"):
        run("gzip", "-9n", page)


def libraries(root):
    """{soname: file on this machine} of all shared libraries that the programs in @root need, also indirectly,
    without glibc's."""
    found = {}
    for name in PROGRAMS:
        for soname, path in LOADED.findall(run("ldd", os.path.join(root, "usr", name))):
            if not GLIBC.match(soname):
                found[soname] = os.path.realpath(path)
    return found


def glibc(root):
    """The same for glibc's own, the loader last."""
    found = {}
    for name in PROGRAMS:
        path = os.path.join(root, "usr", name)
        for soname, at in LOADED.findall(run("ldd", path)):
            if GLIBC.match(soname):
                found[soname] = at
        loader = re.search(r"interpreter: (\S+?)\]", run("readelf", "-l", path)).group(1)
    found[loader] = loader
    return found


def bundle(settings, root, found):
    """Makes the programs use the libraries in the tree."""
    where = os.path.join(root, "usr", settings.libdir, "kindling", "shared")
    os.makedirs(where)
    for soname, path in found.items():
        shutil.copyfile(path, os.path.join(where, soname))


def newest_glibc(root):
    """The newest version of glibc that anything in the tree needs, such as "2.34"."""
    versions = {(2, 17)}
    for name in files_of(root):
        path = os.path.join(root, name)
        with open(path, "rb") as f:
            if os.path.islink(path) or f.read(4) != b"\x7fELF":
                continue
        for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "-V", "-W", path)):
            versions.add((int(major), int(minor)))
    return "%d.%d" % max(versions)


def package_of(path):
    """The Debian package that a file of this machine belongs to."""
    for candidate in (path, path[4:] if path.startswith("/usr/") else "/usr" + path):
        done = subprocess.run(["dpkg-query", "--search", candidate], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(": ")[0].split(",")[0]
    raise SystemExit("packages: no Debian package has %s: packages are built on Debian" % path)
