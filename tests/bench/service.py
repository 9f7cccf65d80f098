"""
The daemon as a service of systemd: service.py [--jdk 17] [--jvms 20] [--rounds 5]. In a systemd of its own, without BPF.

memory    PSS of all its processes, idle: with no JVM, and with many that do next to nothing
start     seconds from `systemctl start` until it is ready, all JVMs stream, and a sample has come from each; with
          targets.attach_rate at its default and without. And seconds of `systemctl stop`.
"""
import json
import os
import re
import sys
import time

import bench
from kindling import wait_for
from systemd import Systemd

UNIT = """[Service]
ExecStart=/opt/jdk/bin/java -Xmx32m -XX:+UseSerialGC -cp /opt/kindling-test/classes Service
Environment=KINDLING_TEST=%s
"""
SETTINGS = "/etc/kindling/kindlingd.yaml"


def memory(bed):
    """{program: (processes, KiB)} of the service."""
    found = {}
    for pid in filter(str.isdigit, os.listdir(bed.root + "/proc")):
        try:
            if "/kindlingd.service" not in bed.read("/proc/%s/cgroup" % pid):
                continue
            name = bed.read("/proc/%s/comm" % pid).strip()
            kib = int(re.search(r"^Pss:\s+(\d+)", bed.read("/proc/%s/smaps_rollup" % pid), re.M).group(1))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        n, sum_kib = found.get(name, (0, 0))
        found[name] = (n + 1, sum_kib + kib)
    return found


def say_memory(what, found):
    print("  %s: %.1f MiB (%s)" % (what, sum(kib for _, kib in found.values()) / 1024, ", ".join(
        "%d %s %.1f" % (n, name, kib / 1024) for name, (n, kib) in sorted(found.items()))))


def targets(bed):
    done = bed.run("kindling", "status", "--json", check=False)
    return json.loads(done.stdout)["targets"] if done.returncode == 0 else []


def start(bed, n):
    begin = time.monotonic()
    bed.run("systemctl", "start", "kindlingd")
    ready = time.monotonic() - begin
    wait_for("streams", lambda: sum(t["state"] == "streaming" for t in targets(bed)) == n, bench.FOREVER)
    streaming = time.monotonic() - begin
    wait_for("samples", lambda: sum(t["samples"]["delivered"] > 0 for t in targets(bed)) == n, bench.FOREVER)
    return {"ready": ready, "streaming": streaming, "samples": time.monotonic() - begin}


def stop(bed):
    begin = time.monotonic()
    bed.run("systemctl", "stop", "kindlingd")
    return time.monotonic() - begin


def starts(bed, args, rate):
    rounds = []
    for _ in range(args.rounds):
        rounds.append(start(bed, args.jvms))
        rounds[-1]["stop"] = stop(bed)
        time.sleep(1)
    bench.table([("attach_rate " + rate, *rounds[0])] + [(name, *("%.2f" % bench.quantile([r[k] for r in rounds], q) for k in rounds[0]))
                                                         for name, q in (("least", 0), ("median", 0.5), ("most", 1))])
    return rounds


def main():
    p = bench.parser(__doc__)
    p.add_argument("--jvms", type=int, default=20, help="services with a JVM (20)")
    p.add_argument("--rounds", type=int, default=5, help="starts of the daemon (5)")
    p.add_argument("--settle", type=float, default=20, help="seconds before memory is read (20)")
    args = bench.begin(p)
    figures = {}
    with Systemd(args.jdk) as bed:
        bed.run("systemctl", "start", "kindlingd")
        time.sleep(args.settle)
        figures["no_jvm"] = memory(bed)
        say_memory("no JVM", figures["no_jvm"])
        stop(bed)
        names = ["jvm%d.service" % i for i in range(args.jvms)]
        for name in names:
            bed.write("/etc/systemd/system/" + name, UNIT % os.environ["KINDLING_TEST"])
        bed.run("systemctl", "daemon-reload")
        bed.run("systemctl", "start", *names)
        figures["default"] = starts(bed, args, "default")
        bed.write(SETTINGS, re.sub(r"attach_rate: .*", "attach_rate: 0", bed.read(SETTINGS)))
        figures["none"] = starts(bed, args, "0")
        start(bed, args.jvms)
        time.sleep(args.settle)
        figures["jvms"] = memory(bed)
        say_memory("%d JVMs" % args.jvms, figures["jvms"])
    bench.finish("service", args, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
