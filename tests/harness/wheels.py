"""Python packages that tests use and Debian does not have, from PyPI, pinned; fetched once into the cache. As a
program: fetches all. After wheels.use("grpcio") `import grpc` works; a package that cannot be fetched skips the
test, or fails it on CI."""
import glob
import os
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jdks  # noqa: E402

PINNED = {"grpcio": "1.66.2", "perfetto": "0.59.1", "protobuf": "6.31.1"}


def fetch(name):
    """The directory to import it from; None if it cannot be fetched."""
    target = os.path.join(jdks.cache_dir(), "python-%s-%s" % (name, PINNED[name]))
    if os.path.exists(target + "/complete"):
        return target
    wheels = target + "-wheel"
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                           "-d", wheels, name + "==" + PINNED[name]], capture_output=True, text=True)
    found = glob.glob(wheels + "/*.whl")
    if done.returncode != 0 or not found:
        print("%s could not be fetched: %s" % (name, done.stderr.strip()[-300:]), file=sys.stderr)
        return None
    with zipfile.ZipFile(found[0]) as wheel:
        wheel.extractall(target)
    open(target + "/complete", "w").close()
    return target


def use(*names):
    for name in names:
        path = fetch(name)
        if not path:
            print("SKIPPED: there is no %s; tests/run fetches it" % name)
            sys.exit(1 if os.environ.get("CI") else 77)
        sys.path.insert(0, path)


if __name__ == "__main__":
    for package in PINNED:
        fetch(package)
