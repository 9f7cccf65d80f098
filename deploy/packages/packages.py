"""The packages that users install, of a build: .deb, .rpm, .tar.gz, an image, the bill of materials and SHA256SUMS.
`cmake --build --preset release --target packages` calls it; docs/operations.md, "Install", says what each is for, and
docs/decisions/0026 why they are made as they are. The same sources, compiler and Debian packages give the same bytes."""
import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "image")]
sys.dont_write_bytecode = True
import archive  # noqa: E402
import deb  # noqa: E402
import image  # noqa: E402
import rpm  # noqa: E402
import sbom  # noqa: E402
import tree  # noqa: E402

NEEDED = {"dpkg-deb": "dpkg", "dpkg-shlibdeps": "dpkg-dev", "rpmbuild": "rpm", "readelf": "binutils"}
WITHOUT_GIT = 1767225600 # 2026: a fixed date, so that the result is the same everywhere
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kindling
Comment: Other people's work that is in this package stands below, with its licence.

Files: *
Copyright: the kindling maintainers
License: Apache-2.0
 The whole text is in /usr/share/doc/kindling/LICENSE, and on Debian in
 /usr/share/common-licenses/Apache-2.0.
"""


def date():
    """SOURCE_DATE_EPOCH, or that of the commit."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", HERE, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else WITHOUT_GIT


def read_settings():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "version", "libdir", "cc", "strip", "out"):
        parser.add_argument("--" + name, required=True)
    settings = parser.parse_args()
    settings.build, settings.out = os.path.abspath(settings.build), os.path.abspath(settings.out)
    settings.epoch = date()
    settings.arch = platform.machine()
    for program, package in NEEDED.items():
        if not shutil.which(program):
            raise SystemExit("packages: %s is missing: apt-get install %s" % (program, package))
    settings.deb_arch = tree.run("dpkg", "--print-architecture").strip()
    return settings


def write_copyrights(root, libraries):
    """Our licence, and those of the projects whose code is included: one file for each Debian package."""
    doc = root + "/usr/share/doc/kindling/"
    lines = ["%s %s: %s (licences/%s)\n" % (lib.name, lib.version, lib.licence(), lib.name) for lib in libraries]
    tree.write(doc + "copyright", COPYRIGHT + "".join("\nFiles: of " + line for line in lines))
    for lib in libraries:
        with open(lib.copyright(), encoding="utf-8", errors="replace") as f:
            tree.write(doc + "licences/" + lib.name, f.read())


def with_libraries(settings, plain, work, name, libraries, found):
    """A tree that needs only glibc of the system's libraries."""
    root = os.path.join(work, name)
    shutil.copytree(plain, root, symlinks=True)
    tree.bundle(settings, root, found)
    write_copyrights(root, libraries)
    return root


def build_tar(settings, root, work):
    name = "kindling-%s-linux-%s" % (settings.version, settings.arch)
    top = os.path.join(work, "tar", name)
    os.makedirs(os.path.dirname(top))
    shutil.copytree(root + "/usr", top, symlinks=True)
    shutil.copytree(root + "/etc", top + "/etc", symlinks=True)
    tree.settle(work + "/tar", settings.epoch)
    content = archive.tar_bytes(lambda tar: archive.add_tree(tar, work + "/tar", "", settings.epoch))
    out = os.path.join(settings.out, name + ".tar.gz")
    with open(out, "wb") as f:
        f.write(archive.zipped(content))
    return out


def build_all(settings, work):
    plain = work + "/plain"
    os.makedirs(plain)
    tree.install(settings, plain)
    found, glibc = tree.libraries(plain), tree.glibc(plain)
    static = sbom.static(settings)
    shared = sbom.of_files(found, "shared: rpm, tar.gz, image; the deb depends on it")
    system = sbom.of_files(glibc, "shared: image")
    ca = [sbom.Library("ca-certificates", "data: image")]

    bom = sbom.document(settings, plain, static + shared + system + ca)
    tree.write(os.path.join(settings.out, "kindling-%s.cdx.json" % settings.version), bom)
    whole = with_libraries(settings, plain, work, "whole", static + shared, found)
    in_image = with_libraries(settings, plain, work, "whole-image", static + shared + system + ca, found)
    for root in (whole, in_image):
        tree.write(root + "/usr/share/doc/kindling/sbom.cdx.json", bom)
    write_copyrights(plain, static)
    deb.build(settings, plain, work)
    rpm.build(settings, whole, work)
    build_tar(settings, whole, work)
    image.build(settings, in_image, glibc, work)


def write_sums(out):
    lines = ["%s  %s\n" % (sbom.sha256(os.path.join(out, n)), n) for n in sorted(os.listdir(out))]
    tree.write(os.path.join(out, "SHA256SUMS"), "".join(lines))


def main():
    settings = read_settings()
    shutil.rmtree(settings.out, ignore_errors=True)
    os.makedirs(settings.out)
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="kindling-packages-") as work:
        build_all(settings, work)
    write_sums(settings.out)
    for name in sorted(os.listdir(settings.out)):
        print("%10d  %s" % (os.path.getsize(os.path.join(settings.out, name)), os.path.join(settings.out, name)))


if __name__ == "__main__":
    main()
