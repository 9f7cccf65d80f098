"""Numbers of proto/wire.h that tests need."""
import os
import re

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/wire.h")


def _header():
    with open(HEADER) as f:
        return f.read()


PROTOCOL = int(re.search(r"#define WIRE_PROTOCOL\s+(\d+)", _header())[1])
# by number: cpu, lock, ...
EVENTS = re.findall(r'X\(\w+, "(\w+)"', re.search(r"#define WIRE_EVENTS\(X\)((?:.*\\\n)*.*)\n", _header())[1])
