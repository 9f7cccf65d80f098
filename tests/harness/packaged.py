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
# what a machine that runs services has: the .deb finds its libraries there, so that installing it needs no network
BASE = ("systemd,init-system-helpers,passwd,ca-certificates,libbpf1,libcjson1,libcurl4,libelf1,libmicrohttpd12,"
        "libprotobuf-c1,libyaml-0-2")
# Python and apt run as ever, the rest of the machine is the root's: @1 is the root, and the words after it run there
ENTER = """
mount --make-rprivate / && mount --rbind "$1" "$1" && cd "$1"
for d in proc dev; do mount --rbind /$d $d; done
mount -t sysfs sys sys && mount -t tmpfs tmpfs run
shift && pivot_root . mnt && cd / && umount -l mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
"""


def build(out=OUT, **environment):
    """Makes the packages of BUILD; their directory."""
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
    """The package whose name ends like this."""
    found = [name for name in os.listdir(out) if name.endswith(suffix)]
    if len(found) != 1:
        raise AssertionError("%s: %s" % (suffix, os.listdir(out)))
    return os.path.join(out, found[0])


@contextlib.contextmanager
def debian(release, base=BASE):
    """A fresh root of @release, to be changed; the cached one stays as it is."""
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
    """To run @words with @root as the whole file system."""
    return ["unshare", "--mount", "sh", "-ec", ENTER, "sh", root, *words]


def files(root):
    """{path: kind and size} of everything there, but what package managers keep of themselves."""
    found = {}
    for directory, dirs, names in os.walk(root):
        for name in dirs + names:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            found[path[len(root):]] = "%o" % (st.st_mode & 0o170000)
    return found


def unpack_image(root):
    """The layers of the image archive below @root; its config."""
    with tarfile.open(one("-oci.tar")) as archive:
        def blob(descriptor):
            return archive.extractfile("blobs/sha256/" + descriptor["digest"][7:])
        index = json.load(archive.extractfile("index.json"))
        manifest = json.load(blob(index["manifests"][0]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer), mode="r:gz") as tree:
                tree.extractall(root)
        return json.load(blob(manifest["config"]))
