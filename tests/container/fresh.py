"""tests/run on a fresh Debian 12: a root with only Debian's minimal set, into which tests/run installs the packages
on its lists. It builds everything there and runs some tests, at least one for each program that tests start. So a
package that a developer's machine has and no list names fails here. fresh.py [--only REGEX] [--keep]"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import jdks  # noqa: E402
import kindling  # noqa: E402

TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
# These tests need jattach, a JDK from PyPI, chromium, runc, crun and all packages of the builds. All their JVMs are
# marked, also those in containers, so they may run at the same time as the tests of the machine outside.
SMOKE = r"^(unit\.test_wire|jvm\.parks17|e2e\.inject25|e2e\.flamegraph_page|container\.doctor)$"
# files with which this machine reaches package registries
SETUP = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/apt/apt.conf")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt" # this machine's file; the packages of the new root write its own again
# a root of its own with this machine's /proc, /sys and /dev; by pivot_root, because runc pivots and does not work in a
# chroot
ENTER = """
mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" && mkdir -p old proc sys dev
for d in proc sys dev; do mount --rbind /$d $d; done
mount --bind "$2" var/cache/apt/archives
# of tests/run outside: compiled files, and whose daemon may start now
[ ! -d "$CCACHE_DIR" ] || { mkdir ccache && mount --bind "$CCACHE_DIR" ccache; }
touch "$4" ".$4" && mount --bind "$4" ".$4"
export CCACHE_DIR=/ccache
pivot_root . old && cd / && umount -l old && rmdir old
cd /kindling && exec tests/run --only "$3"
"""


def make(root):
    done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase",
                           # the archive's dates may be behind this machine's clock
                           "--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Check-Date \"false\"",
                           "--aptopt=Binary::apt-get::APT::Keep-Downloaded-Packages \"true\"",
                           "--dpkgopt=force-unsafe-io",  # faster, and safe because the root lives only for this test
                           "bookworm", root, jdks.MIRROR], capture_output=True, text=True)
    if done.returncode != 0:
        kindling.skip("a root of Debian 12 could not be made: " + done.stderr.strip()[-300:])
    os.mkdir(root + "/kindling")
    tar = subprocess.Popen(["tar", "-C", TOP, "-c", "--exclude=./build", "--exclude=./.git", "."], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-C", root + "/kindling", "-x"], stdin=tar.stdout, check=True)
    if tar.wait() != 0:
        raise AssertionError("the checkout could not be copied")
    for path in SETUP:
        if os.path.exists(path):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            shutil.copy(os.path.realpath(path), root + path)
    if os.path.exists(AUTHORITIES):
        shutil.copy(AUTHORITIES, root + "/kindling-authorities.crt")


def environment():
    """Only the variables that reaching a registry needs: no path to this machine's programs, and no test's mark."""
    kept = {k: v for k, v in os.environ.items()
            if k.lower().endswith("_proxy") or k in ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "CCACHE_DIR")}
    if os.path.exists(AUTHORITIES):
        kept["PIP_CERT"] = "/kindling-authorities.crt"
    return {**kept, "CI": "true", "HOME": "/root", "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=SMOKE, metavar="REGEX", help="which tests run there")
    parser.add_argument("--keep", action="store_true", help="leave the root behind and say where it is")
    args = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        kindling.skip("a root of its own needs root and mmdebstrap (apt-get install mmdebstrap)")
    archives = os.path.join(jdks.cache_dir(), "fresh-archives")
    os.makedirs(archives + "/partial", exist_ok=True)
    root = tempfile.mkdtemp(prefix="kindling-fresh-")
    try:
        make(root)
        return subprocess.run(["unshare", "--mount", "sh", "-ec", ENTER, "sh", root, archives, args.only, kindling.starts.path],
                              env=environment()).returncode
    finally:
        if args.keep:
            print("the root is " + root)
        else:
            subprocess.run(["rm", "-rf", "--one-file-system", root])


if __name__ == "__main__":
    sys.exit(main())
