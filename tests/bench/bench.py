"""What benches share: quartiles, the machine's state, results as JSON beside the build."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD  # noqa: E402


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def spread(values, unit="", digits=3):
    return "median %.*f%s (quartiles %.*f to %.*f, n = %d)" % (
        digits, quantile(values, 0.5), unit, digits, quantile(values, 0.25), digits, quantile(values, 0.75), len(values))


def machine():
    return "%d CPUs, load %.1f" % (os.cpu_count(), os.getloadavg()[0])


def memory_kb(pid, field="RssAnon"):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise AssertionError("no %s of process %d" % (field, pid))


def save(name, result):
    folder = os.path.join(BUILD, "bench")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(dict(result, machine=machine()), f, indent=1)
