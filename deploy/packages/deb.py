"""The Debian package: the tree, with Debian's own libraries as dependencies, one package for Debian 12 and 13."""
import hashlib
import os
import shutil

from tree import PROGRAMS, files_of, run, settle, write

HERE = os.path.dirname(os.path.abspath(__file__))
CONTROL = """Package: kindling
Version: {version}
Architecture: {arch}
Maintainer: kindling maintainers <maintainers@kindling.invalid>
Installed-Size: {size}
Depends: {depends}
Recommends: ca-certificates
Section: admin
Priority: optional
Description: continuous profiler for every JVM of a host
 kindlingd finds the JVMs of a host, in containers too, and loads a small agent
 into each; the JVMs need no option for it. CPU samples, waits for locks and
 allocations are added up, kept and delivered while they happen. The command
 kindling shows them. Nothing runs before kindlingd is started.
"""
# the program that creates the accounts: alternatives in Debian's order of preference
ACCOUNTS = "systemd | systemd-standalone-sysusers | systemd-sysusers"


def depends(work, root):
    """The dependencies that dpkg-shlibdeps finds for the programs, with the versions in this machine's symbols files."""
    os.makedirs(root + "/DEBIAN") # dpkg-shlibdeps finds the top of a package by this directory
    write(work + "/debian/control", "Source: kindling\n\nPackage: kindling\nArchitecture: any\n")
    out = run("dpkg-shlibdeps", "-O", "--warnings=0", *["-e" + os.path.join(root, "usr", p) for p in PROGRAMS], cwd=work)
    return out.strip().split("=", 1)[1] + ", " + ACCOUNTS


def md5sums(root):
    lines = []
    for name in files_of(root):
        path = os.path.join(root, name)
        if not os.path.islink(path) and not name.startswith(("DEBIAN/", "etc/")):
            with open(path, "rb") as f:
                lines.append("%s  %s\n" % (hashlib.md5(f.read()).hexdigest(), name))
    return "".join(lines)


def size_kib(root):
    """The installed size as dpkg-gencontrol computes it: each file in whole KiB, everything else as one."""
    return sum(-(-os.path.getsize(os.path.join(root, n)) // 1024) for n in files_of(root)) \
        + sum(len(dirs) for _, dirs, _ in os.walk(root))


def build(settings, tree, work):
    """Makes the package of @tree without other projects' libraries. Returns the file's path."""
    root = work + "/deb"
    shutil.copytree(tree, root, symlinks=True)
    control = CONTROL.format(version=settings.version, arch=settings.deb_arch, size=size_kib(root),
                             depends=depends(work, root))
    write(root + "/DEBIAN/control", control)
    write(root + "/DEBIAN/md5sums", md5sums(root))
    write(root + "/DEBIAN/conffiles", "".join("/%s\n" % n for n in files_of(root) if n.startswith("etc/")))
    settle(root, settings.epoch)
    for script in ("postinst", "prerm", "postrm"):
        shutil.copyfile(os.path.join(HERE, "deb", script), root + "/DEBIAN/" + script)
        os.chmod(root + "/DEBIAN/" + script, 0o755)
    out = os.path.join(settings.out, "kindling_%s_%s.deb" % (settings.version, settings.deb_arch))
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, out,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(settings.epoch)})
    return out
