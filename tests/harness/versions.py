"""Programs of the next version: copies of the build's with another version number, which has the same length."""
import os
import re
import shutil
import subprocess

from kindling import BUILD

# These contain the version as text. The injector has it in paths, which the compiler splits up: see
# tests/CMakeLists.txt.
NUMBERED = ("kindlingd", "kindling", "kindling-upload", "libkindling.so")


def version_of(inject):
    done = subprocess.run([inject, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def make_next(tree):
    """Turns the copy in @tree into the next version; returns its number."""
    ours, theirs = version_of(BUILD + "/bin/kindling-inject"), version_of(BUILD + "/tests/next_inject")
    assert len(theirs) == len(ours) and theirs != ours, (ours, theirs)
    # matches that are versions of linked libraries, such as LIBBPF_0.1.0
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
                    if n:  # matches that are the name of a shell completion
                        f.seek(0)
                        f.write(text)
                        changed.add(name)
    assert changed == {"kindling-inject", *NUMBERED}, changed
    return theirs
