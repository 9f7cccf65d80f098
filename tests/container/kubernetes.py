"""deploy/kubernetes as a kubelet runs it: kindlingd's image as a pod with hostPID in a real containerd, beside pods of
applications (uid 1000, read-only root, no capability). Names, what owners allow, probes, and nothing left behind.

The image is the build's (target packages). Needs root, containerd, runc, python3-grpcio, python3-protobuf."""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import cri  # noqa: E402
import oci  # noqa: E402

if cri.grpc is None and os.path.exists("/usr/bin/python3") and sys.executable != "/usr/bin/python3":
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # whose packages Debian's python3-* are

import yaml  # noqa: E402
import packaged  # noqa: E402
from bundle import Jdk, MARK  # noqa: E402
from kindling import BUILD, classes, skip, thread_names, timers, wait_for  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFESTS = os.path.join(HERE, "..", "..", "deploy", "kubernetes", "daemonset.yaml")
SECCOMP = os.path.join(os.path.dirname(MANIFESTS), "seccomp.json")
KUBELET = "/var/lib/kubelet"
GRACE_S = 30

SETTINGS = """targets:
  mode: opt-in
  attach_rate: 0
  rules:
    - allow: { environment: "%s" }
labels: { pods: "team,tier" }
""" % MARK


def had_capabilities():
    """Those that this machine gives anybody."""
    with open("/proc/self/status") as f:
        bits = int(re.search(r"CapBnd:\s*(\w+)", f.read()).group(1), 16)
    return {name for number, name in NUMBERS.items() if bits >> number & 1}


NUMBERS = {0: "CHOWN", 1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 3: "FOWNER", 4: "FSETID", 5: "KILL", 6: "SETGID", 7: "SETUID",
           18: "SYS_CHROOT", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 24: "SYS_RESOURCE", 34: "SYSLOG", 38: "PERFMON",
           39: "BPF", 40: "CHECKPOINT_RESTORE"}


def manifest(kind):
    with open(MANIFESTS) as f:
        return next(d for d in list(yaml.safe_load_all(f)) if d["kind"] == kind)


class Node:
    """A containerd with images of kindlingd and of an application, and the directories of hostPath volumes."""

    def __init__(self, containerd):
        self.containerd = containerd
        self.dir = tempfile.mkdtemp(prefix="kindling-node-")
        os.chmod(self.dir, 0o755)
        self.images()

    def images(self):
        root = self.dir + "/images"
        for name in ("pause", "app"):
            os.makedirs(root + "/" + name)
        shutil.copy(BUILD + "/tests/pause", root + "/pause/pause")
        self.load("pause", "localhost/pause:1", ["/pause"])
        for name in ("app", "tmp", "etc", "proc", "dev", "sys", "usr", "jdk"):
            os.makedirs(root + "/app/" + name)
        for link in ("bin", "lib", "lib64"):
            os.symlink("usr/" + link, root + "/app/" + link)
        shutil.copy(classes() + "/Ticks.class", root + "/app/app")
        self.load("app", "localhost/app:1.4")
        packaged.build()
        self.containerd.load(packaged.one("-oci.tar"))

    def load(self, directory, name, entrypoint=()):
        path = self.dir + "/images/" + directory
        oci.archive(path + ".tar", name, path, entrypoint)
        self.containerd.load(path + ".tar")

    def directory(self, name, mode=0o755):
        path = self.dir + "/" + name
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def end(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def image_name():
    return manifest("DaemonSet")["spec"]["template"]["spec"]["containers"][0]["image"]


class Kindlingd:
    """The pod of the DaemonSet, as a kubelet makes it of the manifest."""

    def __init__(self, node, privileged=False, filtered=False):
        spec = manifest("DaemonSet")["spec"]["template"]["spec"]
        container = spec["containers"][0]
        assert spec["hostPID"] is True and container["image"] == image_name()
        self.probe = container["livenessProbe"]["exec"]["command"]
        self.pod = cri.Pod(node.containerd, "kindling", "kindlingd-x%d%d" % (privileged, filtered), host_pid=True, privileged=privileged)
        context = self.security(container["securityContext"], privileged, filtered)
        self.id, self.pid = self.pod.run("kindlingd", container["image"], [], mounts=self.mounts(node, spec, container),
                                         env=["NODE_NAME=node-7"], context=context, privileged=privileged)
        try:
            wait_for("the probe", self.is_healthy)
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, self.pod.logs("kindlingd")))

    def security(self, c, privileged, filtered):
        assert c["readOnlyRootFilesystem"] and not c["privileged"] and not c["allowPrivilegeEscalation"]
        # what this machine has not, no runtime can give
        self.caps = [cap for cap in c["capabilities"]["add"] if cap in had_capabilities()]
        common = {"run_as_user": {"value": c["runAsUser"]}, "run_as_group": {"value": c["runAsGroup"]},
                  "readonly_rootfs": True}
        if privileged:
            return common
        return {**common, "no_new_privs": not c["allowPrivilegeEscalation"],
                "capabilities": {"add_capabilities": self.caps, "drop_capabilities": c["capabilities"]["drop"]},
                "seccomp": {"profile_type": "Localhost", "localhost_ref": os.path.abspath(SECCOMP)} if filtered else
                           {"profile_type": c["seccompProfile"]["type"]},
                "apparmor": {"profile_type": c["appArmorProfile"]["type"]}}

    def mounts(self, node, spec, container):
        settings = node.directory("settings")
        with open(settings + "/kindlingd.yaml", "w") as f:
            f.write(SETTINGS)
        where = {}
        for volume in spec["volumes"]:
            where[volume["name"]] = settings if "configMap" in volume else node.directory(volume["name"])
        mounts = [(where[m["name"]], m["mountPath"], m.get("readOnly", False)) for m in container["volumeMounts"]]
        if not os.path.exists("/proc/1/root/etc"):  # hidden even from root: the daemon looks at its own files then
            mounts += [(path, path, True) for path in (cri.STATE, KUBELET)]
        return mounts

    def is_healthy(self):
        if not os.path.exists("/proc/%d" % self.pid):
            raise AssertionError("kindlingd ended")
        try:
            return self.pod.execute(self.id, *self.probe, seconds=10) == (0, "ok\n")
        except cri.grpc.RpcError:
            return False  # it ended between the two

    def kindling(self, *words):
        """kubectl exec ds/kindlingd -- kindling ..."""
        status, text = self.pod.execute(self.id, "kindling", *words)
        if status:
            raise AssertionError("kindling %s: %d %s" % (" ".join(words), status, text))
        return text

    def target(self, pid):
        return next((t for t in json.loads(self.kindling("status", "--json"))["targets"] if t["pid"] == pid), None)

    def wait_state(self, pid, state):
        def reached():
            t = self.target(pid)
            return t if t and t["state"] == state else None
        try:
            return wait_for("pid %d %s" % (pid, state), reached)
        except AssertionError:
            raise AssertionError("%s\n%s" % (self.target(pid), self.pod.logs("kindlingd")))

    def end(self):
        """As the kubelet ends a pod: SIGTERM, the grace period, then the sandbox."""
        self.pod.containerd.call("StopContainer", container_id=self.id, timeout=GRACE_S)
        self.pod.remove()


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.containerd = cri.Containerd()
        try:
            cls.node = Node(cls.containerd)
        except BaseException:
            cls.containerd.end()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.containerd.end()
        cls.node.end()

    def application(self, pod, name, env=()):
        """uid 1000, a read-only root, an emptyDir for /tmp: (its first process, that directory)."""
        jdk = Jdk("17")
        tmp = self.node.directory("tmp-%s-%s" % (pod.name, name), 0o1777)
        mounts = [(jdk.sysroot + "/usr", "/usr", True), ("/etc/ld.so.cache", "/etc/ld.so.cache", True), (tmp, "/tmp", False)]
        mounts += [(m["source"], m["destination"], True) for m in jdk.etc()]
        if jdk.inside == "/jdk":
            mounts.append((jdk.home, "/jdk", True))
        context = {"run_as_user": {"value": 1000}, "run_as_group": {"value": 1000}, "readonly_rootfs": True,
                   "no_new_privs": True, "capabilities": {"drop_capabilities": ["ALL"]},
                   "seccomp": {"profile_type": "RuntimeDefault"}}
        _, pid = pod.run(name, "localhost/app:1.4", [jdk.inside + "/bin/java", "-Xmx32m", "-XX:+UseSerialGC", "-cp", "/app",
                                                     "Ticks"], env=[MARK, *env], mounts=mounts, context=context)
        wait_for("the JVM: " + pod.logs(name), lambda: "line 1\n" in pod.logs(name))
        return pid, tmp

    def kubelet_writes(self, pod, **files):
        """A downward-API volume, as the kubelet lays it out."""
        volume = "%s/pods/%s/volumes/kubernetes.io~downward-api/podinfo" % (KUBELET, pod.uid)
        top = volume
        while not os.path.isdir(os.path.dirname(top)):
            top = os.path.dirname(top)
        os.makedirs(volume + "/..2026_11_23")
        self.addCleanup(shutil.rmtree, top)
        os.symlink("..2026_11_23", volume + "/..data")
        for name, text in files.items():
            with open(volume + "/..2026_11_23/" + name, "w") as f:
                f.write(text)
            os.symlink("..data/" + name, volume + "/" + name)

    def nothing_is_left(self, pid, tmp, pod, name):
        """Our thread may take a moment to end."""
        wait_for("no agent", lambda: not any("kindling" in n for n in thread_names(pid)))
        self.assertEqual(timers(pid), 0)
        self.assertEqual([n for n in os.listdir(tmp) if not re.match(r"hsperfdata_|\.java_pid\d+$", n)], [])
        with open("/proc/%d/mountinfo" % pid) as f:
            self.assertNotIn("kindling", "".join(line.split(" - ")[0].split()[4] + "\n" for line in f))
        lines = [line.split(" ", 3)[3] for line in pod.logs(name).splitlines()[1:-1] if line.count(" ") >= 3]
        self.assertEqual([line for line in lines if not re.match(r"(error )?line \d+$|READY$", line)], [])

    def test_as_a_pod_beside_pods(self):
        shop = cri.Pod(self.containerd, "shop", "cart-7d9f-x2", labels={"app": "cart"},
                       annotations={"team": "checkout", "not.passed/on": "1"})
        self.kubelet_writes(shop, labels='app="cart"\ntier="front"\n', annotations='note="a \\"b\\""\n')
        bank = cri.Pod(self.containerd, "bank", "ledger-0", annotations={"kindling.io/events": "cpu",
                                                                       "kindling.io/interval": "50ms"})
        quiet = cri.Pod(self.containerd, "bank", "vault-0", annotations={"kindling.io/profile": "false"})
        apps = {name: (pod, *self.application(pod, name)) for pod, name in
                ((shop, "cart"), (bank, "ledger"), (quiet, "vault"))}
        apps["side"] = (shop, *self.application(shop, "side", ["KINDLING_EVENTS=lock"]))
        daemon = Kindlingd(self.node)
        self.check_rights(daemon)
        cart = daemon.wait_state(apps["cart"][1], "streaming")
        self.check_names(cart)
        self.check_owners(daemon, apps)
        wait_for("samples", lambda: daemon.target(cart["pid"])["samples"]["delivered"] > 20)
        self.assertIn("Ticks.main", daemon.kindling("report", "shop/cart-7d9f-x2/cart", "--last", "1m", "--format", "collapsed",
                                                    "-o", "-"))
        daemon.end()
        for name, (pod, pid, tmp) in apps.items():
            self.nothing_is_left(pid, tmp, pod, name)
        for variant in ({"privileged": True}, {"filtered": True}):
            self.check_variant(apps["cart"], **variant)
        for pod in (shop, bank, quiet):
            pod.remove()

    def check_rights(self, daemon):
        """Exactly the manifest's capabilities, and no root file system to write to."""
        with open("/proc/%d/status" % daemon.pid) as f:
            bits = int(re.search(r"CapBnd:\s*(\w+)", f.read()).group(1), 16)
        self.assertEqual({NUMBERS.get(n, n) for n in range(64) if bits >> n & 1}, set(daemon.caps))
        with open("/proc/%d/mountinfo" % daemon.pid) as f:
            root = next(line.split() for line in f if line.split()[4] == "/")
        self.assertIn("ro", root[5].split(","))

    def check_names(self, cart):
        self.assertEqual((cart["pod"], cart["container"], cart["image"]), ("shop/cart-7d9f-x2", "cart", "localhost/app:1.4"))
        self.assertEqual(cart["annotations"], {"app": "cart", "note": 'a "b"', "team": "checkout", "tier": "front"})
        self.assertEqual({k: v for k, v in cart["labels"].items() if k != "host"}, {
            "service": "cart", "namespace": "shop", "version": "1.4", "pod": "cart-7d9f-x2", "pod_namespace": "shop",
            "container": "cart", "image": "localhost/app:1.4", "node": "node-7", "team": "checkout", "tier": "front"})

    def check_owners(self, daemon, apps):
        ledger = daemon.wait_state(apps["ledger"][1], "streaming")
        self.assertGreaterEqual(ledger["interval_asked_ns"], 50_000_000)
        wait_for("cpu alone", lambda: daemon.target(ledger["pid"])["events"] == ["cpu"])
        side = daemon.wait_state(apps["side"][1], "streaming")
        wait_for("lock alone", lambda: daemon.target(side["pid"])["events"] == ["lock"])
        vault = daemon.wait_state(apps["vault"][1], "excluded")
        self.assertEqual(vault["reason"], "its owner says no: kindling.io/profile: false")
        self.assertEqual(vault["attempts"], 0)
        table = daemon.kindling("status")
        for words in (r"shop/cart-7d9f-x2/cart .* streaming ", r"shop/cart-7d9f-x2/side .* lock ", r"bank/vault-0/vault .* excluded ",
                      r"its owner: kindling.io/events: cpu; kindling.io/interval: 50ms"):
            self.assertRegex(table, words)
        status, text = daemon.pod.execute(daemon.id, "kindling", "record", str(ledger["pid"]), "-e", "alloc", "-d", "1s",
                                          "-o", "-")
        self.assertEqual(status, 1, text)
        self.assertIn("the owner of process %d allows cpu alone" % ledger["pid"], text)

    def check_variant(self, cart, **variant):
        """On the same node, which has the history; the JVM is taken over."""
        daemon = Kindlingd(self.node, **variant)
        with open("/proc/%d/status" % daemon.pid) as f:
            self.assertEqual(re.search(r"Seccomp:\s*(\d)", f.read()).group(1), "2" if "filtered" in variant else "0")
        daemon.wait_state(cart[1], "streaming")
        daemon.end()
        self.nothing_is_left(cart[1], cart[2], cart[0], "cart")


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("containerd") or not shutil.which("runc"):
        skip("needs root, containerd and runc")
    if cri.grpc is None:
        skip("needs python3-grpcio and python3-protobuf")
    if not Jdk("17").home:
        skip("there is no JDK 17")
    unittest.main(verbosity=2)
