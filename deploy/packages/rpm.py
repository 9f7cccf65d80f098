"""The rpm: the tree with the libraries that it needs, so that one fits all distributions with glibc of Debian 12's
age; the package asks for glibc and systemd alone."""
import os
import shutil

from tree import files_of, newest_glibc, run, settle

HERE = os.path.dirname(os.path.abspath(__file__))
DEFINES = {
    "_topdir": "{work}/rpmbuild",
    "_rpmdir": "{work}/rpmbuild/RPMS",
    "_rpmfilename": "kindling.rpm",
    "_buildhost": "kindling.invalid",
    "_build_id_links": "none",
    "_binary_payload": "w9.zstdio", # one thread
    "__os_install_post": "%{{nil}}", # the tree is stripped already
    "debug_package": "%{{nil}}",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "tree": "{tree}",
    "the_version": "{version}",
    "the_glibc": "{glibc}",
    "the_files": "{work}/rpm-files",
}


def file_list(tree):
    """Lists every file by its name, and the directories that only kindling has."""
    for name in files_of(tree):
        yield ("%%config(noreplace) /%s" if name.startswith("etc/") else "%%doc /%s" if "/share/doc/" in name
               else "/%s") % name
    for directory, dirs, _ in os.walk(tree):
        for name in dirs:
            if "kindling" in os.path.join(directory, name)[len(tree):]:
                yield "%dir " + os.path.join(directory, name)[len(tree):]


def build(settings, tree, work):
    """Returns the file's path."""
    settle(tree, settings.epoch)
    with open(work + "/rpm-files", "w") as f:
        f.write("".join(line + "\n" for line in sorted(file_list(tree))))
    values = {"work": work, "tree": tree, "version": settings.version, "glibc": newest_glibc(tree)}
    words = []
    for name, value in DEFINES.items():
        words += ["--define", "%s %s" % (name, value.format(**values))]
    run("rpmbuild", "-bb", "--quiet", "--target", settings.arch, "--buildroot", work + "/rpmbuild/BUILDROOT", *words,
        HERE + "/kindling.spec", env={**os.environ, "SOURCE_DATE_EPOCH": str(settings.epoch), "HOME": work})
    out = os.path.join(settings.out, "kindling-%s-1.%s.rpm" % (settings.version, settings.arch))
    shutil.move(work + "/rpmbuild/RPMS/kindling.rpm", out)
    return out
