"""Programs of the next version: those of the build with another number in them, which is as long as ours."""
import os
import re
import shutil
import subprocess

from kindling import BUILD

# In these the version stands as text. In the injector it is in paths, which the compiler takes apart: see tests/CMakeLists.txt.
NUMBERED = ("kindlingd", "kindling", "kindling-upload", "libkindling.so")


def version_of(inject):
    done = subprocess.run([inject, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def make_next(tree):
    """What lies in @tree, a copy, becomes the next version; its number."""
    ours, theirs = version_of(BUILD + "/bin/kindling-inject"), version_of(BUILD + "/tests/next_inject")
    assert len(theirs) == len(ours) and theirs != ours, (ours, theirs)
    # not versions of what is linked in, as LIBBPF_0.1.0
    pattern = re.compile(rb"(?<![A-Z0-9.]_)(?<![0-9.])" + re.escape(ours.encode()) + rb"(?![0-9.])")
    changed = set()
    for directory, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(directory, name)
            if name == "kindling-inject":
                shutil.copy(BUILD + "/tests/next_inject", path)
                changed.add(name)
            elif name in NUMBERED and not os.path.islink(path):
                with open(path, "r+b") as f:
                    text, n = pattern.subn(theirs.encode(), f.read())
                    if n:  # not a completion of that name
                        f.seek(0)
                        f.write(text)
                        changed.add(name)
    assert changed == {"kindling-inject", *NUMBERED}, changed
    return theirs
