#!/usr/bin/env python3
"""A JVM in a container of its own, by runc: own pid, mount, network, IPC and UTS namespaces, own root
file system, uid 1000, no capabilities. /usr of the host is bound in read-only, /tmp is its own.

  container.py up NAME DIR JAVA CLASSPATH MAIN [ARG...]   prints the JVM's pid on the host
  container.py down NAME DIR                              removes it and DIR"""
import json
import os
import shutil
import subprocess
import sys

BIND_READ_ONLY = ["bind", "ro", "nosuid", "nodev"]


def write_root(root, classpath):
    for path in ("usr", "etc", "proc", "dev", "sys", "tmp", "app"):
        os.makedirs(os.path.join(root, path), exist_ok=True)
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    for link in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink("/" + link) and not os.path.lexists(os.path.join(root, link)):
            os.symlink(os.readlink("/" + link), os.path.join(root, link))
    with open(os.path.join(root, "etc/passwd"), "w") as f:
        f.write("root:x:0:0::/root:/bin/false\napp:x:1000:1000::/tmp:/bin/false\n")
    for name in os.listdir(classpath):
        if name.endswith(".class"):
            shutil.copy(os.path.join(classpath, name), os.path.join(root, "app", name))


def mounts():
    out = [{"destination": "/proc", "type": "proc", "source": "proc"},
           {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
           {"destination": "/usr", "type": "none", "source": "/usr", "options": BIND_READ_ONLY}]
    # the JDK's settings are links into /etc on Debian; fetched JDKs lie outside /usr
    for path in ["/etc/ld.so.cache"] + ["/etc/" + n for n in os.listdir("/etc") if n.startswith("java-")]:
        if os.path.exists(path):
            out.append({"destination": path, "type": "none", "source": path, "options": BIND_READ_ONLY})
    return out


def write_config(directory, java, arguments):
    extra = []
    home = os.path.dirname(os.path.dirname(os.path.realpath(java)))
    if not home.startswith("/usr/"):
        extra = [{"destination": "/jdk", "type": "none", "source": home, "options": BIND_READ_ONLY}]
        java = "/jdk/bin/java"
    config = {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 1000, "gid": 1000}, "cwd": "/app", "noNewPrivileges": True,
                    "args": [java, "-Xmx64m", "-cp", "/app"] + arguments, "env": ["PATH=/usr/bin", "HOME=/tmp"],
                    "capabilities": {}},
        "root": {"path": "root"}, "hostname": "demo", "mounts": mounts() + extra,
        "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "network", "ipc", "uts")],
                  "maskedPaths": ["/proc/kcore", "/proc/keys"], "readonlyPaths": ["/proc/sys"]},
    }
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


def up(name, directory, java, classpath, *arguments):
    os.makedirs(directory, exist_ok=True)
    write_root(os.path.join(directory, "root"), classpath)
    write_config(directory, java, list(arguments))
    pidfile = os.path.join(directory, "pid")
    with open(os.path.join(directory, "out"), "w") as out, open(os.path.join(directory, "err"), "w") as err:
        done = subprocess.run(["runc", "run", "-d", "--pid-file", pidfile, "--bundle", directory, name],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    if done.returncode != 0:
        with open(os.path.join(directory, "err")) as err:
            sys.exit("runc: " + err.read().strip())
    with open(pidfile) as f:
        print(f.read().strip())


def down(name, directory):
    subprocess.run(["runc", "delete", "--force", name], stderr=subprocess.DEVNULL)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) > 5 and sys.argv[1] == "up":
        up(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "down":
        down(*sys.argv[2:])
    else:
        sys.exit(__doc__)
