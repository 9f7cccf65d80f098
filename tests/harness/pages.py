"""Checks that docs/reasons.md explains every reason that the programs print, and that the tests exist which
docs/security.md names. Prints a line for each reason, check and cause that is not explained, and each missing
test. A reason is a sentence of fault_set() or forbidden() in injector/ and daemon/, or why the agent collects nothing;
its constant parts must be on the page. FAULT_INTERNAL is left out: those are kindling's own errors, for which users can do nothing."""
import glob
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LITERAL = r'"((?:[^"\\]|\\.)*)"'
LEAST = 12  # shorter pieces occur in any sentence
# reasons that belong to no JVM: a daemon that does not start, and a fixed sentence that the page has in another form
NOT_OF_JVMS = ("daemon/main.c", "daemon/core/", "daemon/ground/", "daemon/cli/", "daemon/symbols/", "daemon/upload/", "daemon/serve/", "daemon/store/",
               "daemon/bpf/", "daemon/discovery/", "daemon/host/host", "daemon/host/sampling", "daemon/notify.c")


def read(path):
    with open(os.path.join(TOP, path)) as f:
        return f.read()


def sentences():
    """(file, sentence)"""
    for folder in ("injector", "daemon"):
        for path in sorted(glob.glob(os.path.join(TOP, folder, "**", "*.c"), recursive=True)):
            name = os.path.relpath(path, TOP)
            if name.startswith(NOT_OF_JVMS):
                continue
            for call in re.findall(r"\b(?:fault_set|forbidden)\s*\((.*?)\);", read(path), re.S):
                if "FAULT_INTERNAL" in call:
                    continue
                # adjacent literals are one; a macro between two is a variable part
                words = re.sub(r'"\s*"', "", call)
                words = re.sub(r'"\s*[A-Z_]+\s*"', "%s", words)
                found = re.search(LITERAL, words)
                if found:
                    yield name, found.group(1).replace('\\"', '"')


def of_the_agent():
    """(file, sentence)"""
    for folder in ("walker", "engine", "session", "hotspot"):
        for path in sorted(glob.glob(os.path.join(TOP, "agent", folder, "**", "*.c"), recursive=True)):
            text = read(path)
            no_timer = re.search(r"\*why_no_timer\(.*?\n}", text, re.S)
            found = re.findall(r"\bwhy =\s*" + LITERAL, text) + re.findall("return " + LITERAL, no_timer.group(0) if no_timer else "")
            for sentence in found:
                yield os.path.relpath(path, TOP), sentence


def pieces(sentence):
    for piece in re.split(r"%[-.\d]*(?:hh|h|ll|l|z|j)?[a-zA-Z]", sentence):
        piece = re.sub(r":\s*$", "", piece).strip()
        if len(piece) >= LEAST:
            yield piece.removeprefix(", ")


def causes():
    for path, table in (("proto/wire.h", "WIRE_DROPS"), ("daemon/upload/ledger.h", "LEDGER_CAUSES")):
        text = re.search(r"#define %s\(X\)(.*?[^\\])\n" % table, read(path), re.S).group(1)
        names = re.findall(r'X\(\w+,\s*"(\w+)"', text)
        assert len(names) > 5, table
        for name in names:
            yield path, name


def unknown_tests():
    """Tests that the table of docs/security.md names and that do not exist."""
    table = re.search(r"fails if it is possible again\n(.*?)\n## ", read("docs/security.md"), re.S).group(1)
    named = re.findall(r"\b((?:test_|e2e/test_)\w+): ((?:`\w+`(?:, )?)+)", table)
    assert len(named) > 20, named
    for name, functions in named:
        text = read("tests/%s.py" % name if "/" in name else "tests/unit/%s.c" % name)
        for function in re.findall(r"`(\w+)`", functions):
            if not re.search(r"\b%s\((?:void|self)\b" % function, text):
                yield "%s: %s" % (name, function)


def main():
    page = re.sub(r"\s+", " ", read("docs/reasons.md"))
    told, agents = list(sentences()), list(of_the_agent())
    assert len(told) > 50 and len(agents) > 12, (told, agents)
    told += agents
    missing = ["%s: %s" % (name, sentence) for name, sentence in told if any(p not in page for p in pieces(sentence))]
    missing += ["%s: the cause %s" % (name, cause) for name, cause in causes() if "| %s |" % cause not in page]
    print("".join("docs/reasons.md does not explain, of %s\n" % line for line in missing), end="")
    unknown = list(unknown_tests())
    print("".join("docs/security.md names a test that does not exist: %s\n" % line for line in unknown), end="")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
