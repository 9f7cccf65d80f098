"""Checks for the programs that the tests start. tests/run calls it before it builds, so that a missing program is
reported at once, with its package, and not by tests that time out. programs.py: exit 1 and a line for each program
that is missing. programs.py --listed: exit 1 and a line for each program that tests start and PROGRAMS does not
have, and for each package in PROGRAMS that packages.txt does not have."""
import ast
import glob
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..")

# program: Debian package; None = every Debian has it ("essential", or part of python3, which runs this script)
PROGRAMS = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "cc": "build-essential",
    "chromium": "chromium",
    "clickhouse-server": "clickhouse-server",
    "cmake": "cmake",
    "containerd": "containerd",
    "crun": "crun",
    "ctest": "cmake",
    "ctr": "containerd",
    "curl": "curl",
    "fish": "fish",
    "jattach": "jattach",
    "javac": "openjdk-17-jdk-headless",
    "man": "man-db",
    "mmdebstrap": "mmdebstrap",
    "mvn": "maven",
    "ninja": "ninja-build",
    "openssl": "openssl",
    "pgrep": "procps",
    "pkill": "procps",
    "promtool": "prometheus",
    "readelf": "build-essential",
    "rpm": "rpm",
    "runc": "runc",
    "systemd-analyze": "systemd-container",
    "systemd-nspawn": "systemd-container",
    "zsh": "zsh",
    **dict.fromkeys(("awk", "bash", "chown", "chroot", "cp", "dmesg", "dpkg-deb", "grep", "id", "ls", "mktemp", "mount", "nsenter", "sed", "seq", "setpriv", "sh", "sleep",
                     "tail", "tar", "timeout", "umount", "unshare", "rm")),
}
# programs that a test looks for itself and can do without, or that only labels start which run when named
OPTIONAL = {"go", "helm", "npm", "/usr/local/go/bin/go", "chromium-browser", "google-chrome", "qemu-aarch64-static",
            "aarch64-linux-gnu-nm", "aarch64-linux-gnu-readelf", "podman", "newuidmap", "apparmor_parser", "zstd"}


def first_words(call):
    """The program's name in subprocess.run([NAME, ...]), shutil.which(NAME) and similar calls, if it is a literal."""
    of = call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
    if of not in ("subprocess", "shutil", "os") or not call.args:
        return
    if of != "subprocess" and call.func.attr not in ("which", "execvp"):
        return
    word = call.args[0]
    if isinstance(word, (ast.List, ast.Tuple)) and word.elts:
        word = word.elts[0]
    if isinstance(word, ast.Constant) and isinstance(word.value, str):
        yield word.value


def started():
    """{program: a file that starts it}"""
    found = {}
    for path in sorted(glob.glob(TESTS + "/**/*.py", recursive=True)):
        with open(path) as f:
            for node in ast.walk(ast.parse(f.read())):
                if isinstance(node, ast.Call):
                    for word in first_words(node):
                        found.setdefault(word, path)
    for path in sorted(glob.glob(TESTS + "/**/*.c", recursive=True)):
        with open(path) as f:
            for word in re.findall(r'\bexeclp\("([^"]+)"', f.read()):
                found.setdefault(word, path)
    return found


def not_listed():
    with open(HERE + "/packages.txt") as f:
        packages = {line.strip() for line in f if not line.startswith("#")}
    for program, path in started().items():
        if program not in PROGRAMS and program not in OPTIONAL:
            yield "%s is started by tests/%s: name it in tests/harness/programs.py" % (program, os.path.relpath(path, TESTS))
    for program, package in PROGRAMS.items():
        if package and package not in packages:
            yield "%s is needed for %s: name it in tests/harness/packages.txt" % (package, program)


def missing():
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            yield "%s is missing%s" % (program, ": apt-get install " + package if package else "")


def main():
    wrong = list(not_listed() if sys.argv[1:] == ["--listed"] else missing())
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
