"""The packages of the build, and roots of Debian to install them in."""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

import jdks
from kindling import BUILD, skip

OUT = BUILD + "/packages"
# packages that a machine with services has: with them the .deb finds its libraries, so that installing it needs no
# network
BASE = ("systemd,init-system-helpers,passwd,ca-certificates,libbpf1,libcjson1,libcurl4,libelf1,libmicrohttpd12,"
        "libprotobuf-c1,libyaml-0-2")
# runs Python and apt of this machine with another root: @1 is the root, and the following words run in it
ENTER = """
mount --make-rprivate / && mount --rbind "$1" "$1" && cd "$1"
for d in proc dev; do mount --rbind /$d $d; done
mount -t sysfs sys sys && mount -t tmpfs tmpfs run
shift && pivot_root . mnt && cd / && umount -l mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
"""


def build(out=OUT, **environment):
    """Makes the packages of BUILD; returns their directory."""
    with open(BUILD + "/packages.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["cmake", "--build", BUILD, "--target", "packages"], capture_output=True, text=True,
                              env={**os.environ, **environment})
        if done.returncode != 0:
            raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
        if out != OUT:
            shutil.copytree(OUT, out)
    return out


def one(suffix, out=OUT):
    """The path of the package whose name has this end."""
    found = [name for name in os.listdir(out) if name.endswith(suffix)]
    if len(found) != 1:
        raise AssertionError("%s: %s" % (suffix, os.listdir(out)))
    return os.path.join(out, found[0])


@contextlib.contextmanager
def debian(release, base=BASE):
    """A copy of the cached root of @release, which the test may change."""
    cached = jdks.make_root("root-packages-" + release, "Debian " + release, "--variant=minbase", "--include=" + base,
                            "--aptopt=Apt::Install-Recommends \"false\"", release)
    if not cached:
        skip("a root of Debian %s could not be made" % release)
    root = tempfile.mkdtemp(prefix="kindling-root-")
    try:
        os.chmod(root, 0o755)
        subprocess.run(["cp", "-a", cached + "/.", root], check=True)
        yield root
    finally:
        shutil.rmtree(root)


def command(root, *words):
    """The command that runs @words with @root as the whole file system."""
    return ["unshare", "--mount", "sh", "-ec", ENTER, "sh", root, *words]


def files(root):
    """{path: kind and size} of everything in @root, except the package managers' own files."""
    found = {}
    for directory, dirs, names in os.walk(root):
        for name in dirs + names:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            found[path[len(root):]] = "%o" % (st.st_mode & 0o170000)
    return found


def unpack_image(root):
    """Unpacks the layers of the image archive below @root; returns the image's config."""
    with tarfile.open(one("-oci.tar")) as archive:
        def blob(descriptor):
            return archive.extractfile("blobs/sha256/" + descriptor["digest"][7:])
        index = json.load(archive.extractfile("index.json"))
        manifest = json.load(blob(index["manifests"][0]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer), mode="r:gz") as tree:
                tree.extractall(root)
        return json.load(blob(manifest["config"]))
