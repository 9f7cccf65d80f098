"""Names, labels and annotations of pods from the socket of a real containerd (`names.cri`), for pods without labels
in files: the owners' settings there count, and uploads have the labels. And cases without an answer: a containerd
that hangs and is asked again when it answers, and a path at which nobody listens. Needs root, containerd, runc,
python3-grpcio and python3-protobuf."""
import glob
import json
import os
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import cri  # noqa: E402

if cri.grpc is None and os.path.exists("/usr/bin/python3") and sys.executable != "/usr/bin/python3":
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # the installation that has Debian's python3-* packages

from bundle import Jdk, MARK  # noqa: E402
from kindling import Daemon, agent_copies, skip, thread_names, wait_for  # noqa: E402
import kubernetes  # noqa: E402

SOCKET = cri.STATE + "/containerd.sock"
HELD_BACK_S = 40  # limit until a JVM without names streams on a busy machine; three seconds of it wait for the answer


def settings(address, directory):
    return """targets:
  mode: opt-in
  attach_rate: 0
  rules:
    - allow: { environment: "%s" }
labels: { pods: "tier" }
names: { cri: "%s" }
sinks:
  - { name: dir, type: files, directory: "%s", format: json, interval: 10s }
""" % (MARK, address, directory)


def uploads(directory):
    """The labels of the JVMs in a sink's files, by pod."""
    found = {}
    for path in glob.glob(directory + "/*cpu*.json"):
        with open(path) as f:
            found.update((p["labels"].get("pod"), p["labels"]) for p in json.load(f)["processes"])
    return found


class CriNames(unittest.TestCase):
    application = kubernetes.Kubernetes.application

    def setUp(self):
        self.containerd = cri.Containerd()
        self.addCleanup(self.containerd.end)
        self.node = kubernetes.Node(self.containerd, kindling=False)
        self.addCleanup(self.node.end)
        self.taken = self.node.directory("uploads", 0o777)  # kindling-upload has an account of its own

    def test_labels_of_pods(self):
        shop = cri.Pod(self.containerd, "shop", "cart-7d9f-x2", labels={"app": "cart", "tier": "front"},
                       annotations={"not.passed/on": "1"})
        quiet = cri.Pod(self.containerd, "bank", "vault-0", labels={"kindling.io/profile": "false"})
        less = cri.Pod(self.containerd, "bank", "ledger-0", labels={"kindling.io/events": "cpu"})
        apps = {pod.name: self.application(pod, "app")[0] for pod in (shop, quiet, less)}
        with Daemon(settings("unix://" + SOCKET, self.taken)) as daemon:
            cart = daemon.wait_state(apps["cart-7d9f-x2"], "streaming")
            self.assertEqual(cart["annotations"], {"app": "cart", "tier": "front", "not.passed/on": "1"})
            self.assertEqual((cart["pod"], cart["container"], cart["image"]), ("shop/cart-7d9f-x2", "app", "localhost/app:1.4"))
            self.assertRegex(cart["image_digest"], r"^sha256:[0-9a-f]{64}$")
            self.assertEqual({k: cart["labels"][k] for k in ("service", "tier", "pod")},
                             {"service": "cart", "tier": "front", "pod": "cart-7d9f-x2"})
            vault = daemon.wait_state(apps["vault-0"], "excluded")
            self.assertEqual((vault["reason"], vault["attempts"], agent_copies(vault["pid"])),
                             ("its owner forbids profiling: kindling.io/profile: false", 0, 0))
            ledger = daemon.wait_state(apps["ledger-0"], "streaming")
            wait_for("cpu alone", lambda: daemon.target(ledger["pid"])["events"] == ["cpu"])
            names = daemon.status()["names"]
            self.assertEqual((names["state"], names["why"], names["unanswered"]), ("on", None, 0))
            self.assertGreaterEqual(names["named"], 3)
            self.assertRegex(daemon.cli("doctor", str(cart["pid"])).stdout, r"ok +names +the container runtime answers at /run/k3s/")
            # windows of ten seconds, then the sink's interval
            labels = wait_for("an upload of both", lambda: self.uploaded("cart-7d9f-x2", "ledger-0"), 120)
            self.assertEqual({k: labels["cart-7d9f-x2"].get(k) for k in ("service", "tier", "container", "namespace")},
                             {"service": "cart", "tier": "front", "container": "app", "namespace": "shop"})
            self.assertNotIn("tier", labels["ledger-0"])
            self.assertNotIn("vault-0", labels)
            self.without_an_answer(daemon, apps)

    def uploaded(self, *pods):
        labels = uploads(self.taken)
        return labels if set(pods) <= set(labels) else None

    def without_an_answer(self, daemon, apps):
        """With the host's files as the only source: JVMs stream in time, with one sentence about what is missing."""
        os.kill(self.containerd.process.pid, signal.SIGSTOP)
        try:
            self.starts_without(daemon, apps, SOCKET, "it does not answer within 3 seconds")
            daemon.wait_state(apps["vault-0"], "streaming")  # it is not known yet that its owner forbids it
        finally:
            os.kill(self.containerd.process.pid, signal.SIGCONT)
        self.comes_later(daemon, apps)
        wait_for("containerd", self.containerd.answers)
        self.starts_without(daemon, apps, cri.STATE, "nobody listens there")
        self.starts_without(daemon, apps, "/nowhere/cri.sock", "there is no such socket")

    def comes_later(self, daemon, apps):
        """When the runtime is asked again and answers, its labels take effect without a new attach."""
        cart = wait_for("labels of the pod", lambda: (t := daemon.target(apps["cart-7d9f-x2"]))["annotations"] and t, 120)
        self.assertEqual((cart["state"], cart["annotations"]), ("streaming", {"app": "cart", "tier": "front", "not.passed/on": "1"}))
        self.assertEqual({k: cart["labels"].get(k) for k in ("service", "tier")}, {"service": "cart", "tier": "front"})
        vault = daemon.wait_state(apps["vault-0"], "excluded", 120)
        self.assertEqual(vault["reason"], "its owner forbids profiling: kindling.io/profile: false")
        wait_for("no agent there", lambda: "kindling" not in thread_names(vault["pid"]))
        wait_for("cpu alone", lambda: daemon.target(apps["ledger-0"])["events"] == ["cpu"], 120)
        wait_for("no container without an answer", lambda: daemon.status()["names"]["asking_again"] == 0)
        names = daemon.status()["names"]
        self.assertEqual((names["state"], names["why"]), ("on", None))
        self.assertGreaterEqual(names["answered_later"], 3)
        self.assertNotIn("names of pods", daemon.cli("status").stdout)

    def starts_without(self, daemon, apps, path, sentence):
        daemon.stop()
        daemon.configure(settings("unix://" + path, self.taken))
        begin = time.monotonic()
        daemon.start()
        cart = daemon.wait_state(apps["cart-7d9f-x2"], "streaming")
        self.assertLess(time.monotonic() - begin, HELD_BACK_S)
        self.assertEqual((cart["pod"], cart["annotations"]), ("shop/cart-7d9f-x2", {}))
        names = daemon.status()["names"]
        self.assertEqual((names["state"], names["why"]), ("failing", "%s: %s" % (path, sentence)))
        self.assertRegex(re.sub(r"\s+", " ", daemon.cli("status").stdout),
                         r"names of pods \(names\.cri\): %s: %s; \d JVMs? went on without its answer; "
                         r"it is asked again about \d containers?" % (path, sentence))
        self.assertRegex(re.sub(r"\s+", " ", daemon.cli("doctor", str(cart["pid"])).stdout), "unknown names " + path)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("containerd") or not shutil.which("runc"):
        skip("needs root, containerd and runc")
    if cri.grpc is None:
        skip("needs python3-grpcio and python3-protobuf")
    if not Jdk("17").home:
        skip("there is no JDK 17")
    unittest.main(verbosity=2)
