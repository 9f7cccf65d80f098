"""Runs deploy/kubernetes as a kubelet does: kindlingd's image as a pod with hostPID in a real containerd, beside pods
of applications (uid 1000, read-only root, no capability). Names, what owners allow, probes, the next version's pod
in its place, and nothing left behind. The image is the build's (target packages). Needs root, containerd, runc,
python3-grpcio, python3-protobuf."""
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import cri  # noqa: E402
import oci  # noqa: E402

if cri.grpc is None and os.path.exists("/usr/bin/python3") and sys.executable != "/usr/bin/python3":
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # the installation that has Debian's python3-* packages

import yaml  # noqa: E402
import packaged  # noqa: E402
import versions  # noqa: E402
from bundle import Jdk, MARK  # noqa: E402
from kindling import BUILD, Contention, agent_copies, accounts_balance, classes, skip, starts, thread_names, timers, wait_for, wait_seen  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFESTS = os.path.join(HERE, "..", "..", "deploy", "kubernetes", "")
SECCOMP = MANIFESTS + "seccomp.json"
KUBELET = "/var/lib/kubelet"
GRACE_S = 30
GAP_S = 2 # seconds without samples of a JVM, beyond those that the node needs between two pods
THEIRS = re.compile(r"hsperfdata_|\.java_pid\d+$") # the JVM's own

SETTINGS = """targets:
  mode: opt-in
  attach_rate: 0
  rules:
    - allow: { environment: "%s" }
labels: { pods: "team,tier" }
""" % MARK
FAST = "events: { cpu: { interval: 1ms } }\n"


def had_capabilities():
    """The capabilities that any process of this machine can have."""
    with open("/proc/self/status") as f:
        bits = int(re.search(r"CapBnd:\s*(\w+)", f.read()).group(1), 16)
    return {name for number, name in NUMBERS.items() if bits >> number & 1}


NUMBERS = {0: "CHOWN", 1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 3: "FOWNER", 4: "FSETID", 5: "KILL", 6: "SETGID", 7: "SETUID",
           18: "SYS_CHROOT", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 24: "SYS_RESOURCE", 34: "SYSLOG", 38: "PERFMON",
           39: "BPF", 40: "CHECKPOINT_RESTORE"}


def pod_spec(file="daemonset.yaml"):
    with open(MANIFESTS + file) as f:
        return next(d for d in yaml.safe_load_all(f) if d and d["kind"] == "DaemonSet")["spec"]["template"]["spec"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    """A containerd with images of kindlingd and of an application, and the directories of hostPath volumes."""

    def __init__(self, containerd, kindling=True):
        """@kindling: kindlingd's image too."""
        self.containerd = containerd
        self.dir = tempfile.mkdtemp(prefix="kindling-node-")
        os.chmod(self.dir, 0o755)
        self.images(kindling)

    def images(self, kindling):
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
        if kindling:
            packaged.build()
            self.containerd.load(packaged.one("-oci.tar"))

    def load(self, directory, name, entrypoint=(), **more):
        path = self.dir + "/images/" + directory
        oci.archive(path + ".tar", name, path, entrypoint, **more)
        self.containerd.load(path + ".tar")

    def next_image(self):
        """Makes the image of the next version: (its name, that version)."""
        root = self.dir + "/images/next"
        config = packaged.unpack_image(root)["config"]
        version = versions.make_next(root)
        name = image_name().rsplit(":", 1)[0] + ":" + version
        self.load("next", name, config["Entrypoint"] + config["Cmd"], env=config["Env"])
        return name, version

    def directory(self, name, mode=0o755):
        path = self.dir + "/" + name
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def file(self, name, text):
        with open(self.dir + "/" + name, "w") as f:
            f.write(text)
        return self.dir + "/" + name

    def end(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def image_name():
    return pod_spec()["containers"][0]["image"]


class Kindlingd:
    """The DaemonSet's pod, as a kubelet makes it from the manifest."""

    def __init__(self, node, privileged=False, sidecars=False, image=None, more=""):
        """@sidecars: the pod of sidecars.yaml, in which kindlingd has a seccomp filter. @more: settings."""
        spec = pod_spec("sidecars.yaml" if sidecars else "daemonset.yaml")
        containers = spec["containers"]
        assert spec["hostPID"] is True and {c["image"] for c in containers} == {image_name()}
        self.image, self.settings, self.port = image or image_name(), SETTINGS + more, free_port()
        self.probe = next(c for c in containers if c["name"] == "kindlingd")["livenessProbe"]["exec"]["command"]
        self.pod = cri.Pod(node.containerd, "kindling", "kindlingd-x%d%d" % (privileged, sidecars), host_pid=True, privileged=privileged)
        with starts:  # it would detach agents that a killed daemon of another test left
            self.start(node, spec, privileged)
            wait_seen(lambda: json.loads(self.kindling("status", "--json")))

    def start(self, node, spec, privileged):
        self.caps, ids = {}, {}
        for c in spec["containers"]:
            ids[c["name"]] = self.pod.run(c["name"], self.image, self.command(c), mounts=self.mounts(node, spec, c), env=self.environment(c),
                                          context=self.security(c, privileged), privileged=privileged)
        self.id, self.pid = ids["kindlingd"]
        try:
            wait_for("the probe", self.is_healthy)
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, self.pod.logs("kindlingd")))

    def command(self, c):
        """Gives metrics a port of their own, because pods of this test use the node's network."""
        port = ":%d" % c["ports"][0]["containerPort"] if "ports" in c else None
        return [":%d" % self.port if word == port else word for word in c.get("command", [])]

    def environment(self, c):
        return [e["name"] + "=" + (e["value"] if "value" in e else {"spec.nodeName": "node-7"}[e["valueFrom"]["fieldRef"]["fieldPath"]])
                for e in c.get("env", [])]

    def security(self, container, privileged):
        c = container["securityContext"]
        assert c["readOnlyRootFilesystem"] and not c["privileged"] and not c["allowPrivilegeEscalation"]
        # a container runtime cannot give capabilities that this machine does not have
        caps = self.caps[container["name"]] = [cap for cap in c["capabilities"].get("add", []) if cap in had_capabilities()]
        common = {"run_as_user": {"value": c["runAsUser"]}, "run_as_group": {"value": c["runAsGroup"]},
                  "readonly_rootfs": True}
        if privileged:
            return common
        profile = c["seccompProfile"]["type"]
        apparmor = {"apparmor": {"profile_type": c["appArmorProfile"]["type"]}} if "appArmorProfile" in c else {}
        return {**common, **apparmor, "no_new_privs": not c["allowPrivilegeEscalation"],
                "capabilities": {"add_capabilities": caps, "drop_capabilities": c["capabilities"]["drop"]},
                "seccomp": {"profile_type": "Localhost", "localhost_ref": os.path.abspath(SECCOMP)} if profile == "Localhost" else
                           {"profile_type": profile}}

    def mounts(self, node, spec, container):
        settings = node.directory("settings")
        with open(settings + "/kindlingd.yaml", "w") as f:
            f.write(self.settings)
        where = {}
        for volume in spec["volumes"]:
            where[volume["name"]] = settings if "configMap" in volume else node.directory(
                volume["name"], 0o777 if "emptyDir" in volume else 0o755)
        mounts = [(where[m["name"]], m["mountPath"], m.get("readOnly", False)) for m in container["volumeMounts"]]
        if not os.path.exists("/proc/1/root/etc"):  # hidden even from root: the daemon itself looks at its own files then
            mounts += [(path, path, True) for path in (cri.STATE, KUBELET)]
        return mounts

    def is_healthy(self):
        if not os.path.exists("/proc/%d" % self.pid):
            raise AssertionError("kindlingd ended")
        try:
            return self.pod.execute(self.id, *self.probe, seconds=10) == (0, "ok\n")
        except cri.grpc.RpcError:
            return False  # it ended between the two calls

    def kindling(self, *words):
        """Runs what `kubectl exec ds/kindlingd -- kindling ...` would."""
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
        """Ends the pod as the kubelet does: SIGTERM, the grace period, then the sandbox. Returns when it had ended,
        in ns."""
        self.pod.containerd.call("StopContainer", container_id=self.id, timeout=GRACE_S)
        ended = self.when("finished_at")
        self.pod.remove()
        return ended

    def when(self, what):
        return int(self.pod.containerd.call("ContainerStatus", container_id=self.id)["status"][what])


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

    def tearDown(self):
        for pod in self.containerd.pods[::-1]:  # left by a test that failed: the next one has a node of its own
            pod.remove()

    def application(self, pod, name, env=(), seccomp=None):
        """An application with uid 1000, a read-only root and an emptyDir for /tmp: (its first process, that
        directory)."""
        profile = {"profile_type": "Localhost", "localhost_ref": seccomp} if seccomp else {"profile_type": "RuntimeDefault"}
        jdk = Jdk("17")
        tmp = self.node.directory("tmp-%s-%s" % (pod.name, name), 0o1777)
        mounts = [(jdk.sysroot + "/usr", "/usr", True), ("/etc/ld.so.cache", "/etc/ld.so.cache", True), (tmp, "/tmp", False)]
        mounts += [(m["source"], m["destination"], True) for m in jdk.etc()]
        if jdk.inside == "/jdk":
            mounts.append((jdk.home, "/jdk", True))
        context = {"run_as_user": {"value": 1000}, "run_as_group": {"value": 1000}, "readonly_rootfs": True,
                   "no_new_privs": True, "capabilities": {"drop_capabilities": ["ALL"]},
                   "seccomp": profile}
        _, pid = pod.run(name, "localhost/app:1.4", [jdk.inside + "/bin/java", "-Xmx32m", "-XX:+UseSerialGC", "-cp", "/app",
                                                     "Ticks"], env=[MARK, *env], mounts=mounts, context=context)
        wait_for("the JVM: " + pod.logs(name), lambda: "line 1\n" in pod.logs(name))
        return pid, tmp

    def kubelet_writes(self, pod, **files):
        """A downward-API volume with the kubelet's layout."""
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
        """The agent's thread may take a moment to end."""
        wait_for("no agent", lambda: not any("kindling" in n for n in thread_names(pid)))
        self.assertEqual(timers(pid), 0)
        self.assertEqual([n for n in os.listdir(tmp) if not THEIRS.match(n)], [])
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
        wait_for("a report", lambda: "Ticks.main" in daemon.kindling(
            "report", "shop/cart-7d9f-x2/cart", "--last", "1m", "--format", "collapsed", "-o", "-"))
        daemon.end()
        for name, (pod, pid, tmp) in apps.items():
            self.nothing_is_left(pid, tmp, pod, name)
        for variant in ({"privileged": True}, {"sidecars": True}):
            self.check_variant(apps["cart"], **variant)
        for pod in (shop, bank, quiet):
            pod.remove()

    def test_the_next_version_takes_over(self):
        """A rolling update, as the DaemonSet's controller and the kubelet do it: the old pod ends, then the new one
        begins."""
        apps = []
        for i in range(2):
            pod = cri.Pod(self.containerd, "shop", "web-%d" % i, annotations={"team": "t%d" % i})
            apps.append((pod, *self.application(pod, "web")))
        image, version = self.node.next_image()
        daemon = Kindlingd(self.node, more=FAST)
        had = []
        for _, pid, _ in apps:
            self.assertIsNone(self.sampled(daemon, pid)["gap"])
            had.append(self.in_history(daemon, pid))
        with Contention() as contention:
            ended = daemon.end()
            daemon = Kindlingd(self.node, image=image, more=FAST)
            between_s = (daemon.when("started_at") - ended) / 1e9
            targets = [self.sampled(daemon, pid) for _, pid, _ in apps]
        self.assertEqual(json.loads(daemon.kindling("status", "--json"))["version"], version)
        gaps = [t["gap"]["ns"] / 1e9 - between_s for t in targets]
        print("\n  JVMs without samples for %s s, %.2f s of it between the two pods; on a machine that is %.1f times as slow as alone" % (
            ", ".join("%.2f" % (gap + between_s) for gap in gaps), between_s, contention.times))
        self.assertLess(max(gaps), GAP_S * contention.times, daemon.pod.logs("kindlingd"))
        for i, (pod, pid, tmp) in enumerate(apps):
            self.check_taken_over(daemon, targets[i], "web-%d" % i, tmp)
            wait_for("the history of before", lambda: self.in_history(daemon, pid) > had[i])
        daemon.end()
        for pod, pid, tmp in apps:
            self.nothing_is_left(pid, tmp, pod, "web")
            pod.remove()

    def sampled(self, daemon, pid):
        daemon.wait_state(pid, "streaming")
        wait_for("samples", lambda: daemon.target(pid)["samples"]["delivered"] > 20)
        return daemon.target(pid)

    def in_history(self, daemon, pid):
        return json.loads(daemon.kindling("report", str(pid), "--last", "10m", "--format", "json", "-o", "-"))["losses"]["delivered"]

    def check_taken_over(self, daemon, t, name, tmp):
        """The process is the same, has one agent, which works, and the gap is in the accounts."""
        accounts_balance(t)
        self.assertGreater(t["samples"]["dropped"]["restart"], 0)
        self.assertAlmostEqual(t["samples"]["dropped"]["restart"], t["gap"]["cpu_ns"] / 1e6, delta=1)
        self.assertEqual((t["pod"], t["container"], t["annotations"]["team"]), ("shop/" + name, "web", "t" + name[-1]))
        wait_for("one agent", lambda: thread_names(t["pid"]).count("kindling") == 1)
        self.assertEqual(agent_copies(t["pid"]), 2)  # the old library stays mapped until the JVM ends
        wait_for("the old agent's files to be gone", lambda: not [n for n in os.listdir(tmp) if not THEIRS.match(n)])

    def check_rights(self, daemon):
        """The pod has exactly the manifest's capabilities, and cannot write to its root file system."""
        with open("/proc/%d/status" % daemon.pid) as f:
            bits = int(re.search(r"CapBnd:\s*(\w+)", f.read()).group(1), 16)
        self.assertEqual({NUMBERS.get(n, n) for n in range(64) if bits >> n & 1}, set(daemon.caps["kindlingd"]))
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
        self.assertEqual(vault["reason"], "its owner forbids profiling: kindling.io/profile: false")
        self.assertEqual(vault["attempts"], 0)
        table = daemon.kindling("status")
        for words in (r"shop/cart-7d9f-x2/cart .* streaming ", r"shop/cart-7d9f-x2/side .* lock ", r"bank/vault-0/vault .* excluded ",
                      r"its owner: kindling.io/events: cpu; kindling.io/interval: 50ms"):
            self.assertRegex(table, words)
        status, text = daemon.pod.execute(daemon.id, "kindling", "record", str(ledger["pid"]), "-e", "alloc", "-d", "1s",
                                          "-o", "-")
        self.assertEqual(status, 1, text)
        self.assertIn("the owner of process %d allows only cpu" % ledger["pid"], text)

    def check_variant(self, cart, **variant):
        """A new pod on the same node, which has the history, takes the JVM over."""
        daemon = Kindlingd(self.node, **variant)
        with open("/proc/%d/status" % daemon.pid) as f:
            self.assertEqual(re.search(r"Seccomp:\s*(\d)", f.read()).group(1), "2" if "sidecars" in variant else "0")
        daemon.wait_state(cart[1], "streaming")
        if "sidecars" in variant:
            self.check_sidecars(daemon)
        daemon.end()
        self.nothing_is_left(cart[1], cart[2], cart[0], "cart")

    def check_sidecars(self, daemon):
        """One sidecar reads the filters that kindlingd may not read, the other answers Prometheus."""
        pod = cri.Pod(self.containerd, "bank", "deadly-0")
        pid, _ = self.application(pod, "deadly", seccomp=self.node.file("deadly.json", json.dumps({
            "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["timer_create"], "action": "SCMP_ACT_KILL_PROCESS"}]})))
        self.assertRegex(daemon.wait_state(pid, "failed")["reason"], r"would kill the JVM when the agent calls timer_create\(\)")
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % daemon.port, timeout=60) as answer:
            self.assertRegex(answer.read().decode(), r'kindling_targets\{state="streaming"\} [1-9]')
        pod.remove()


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("containerd") or not shutil.which("runc"):
        skip("needs root, containerd and runc")
    if cri.grpc is None:
        skip("needs python3-grpcio and python3-protobuf")
    if not Jdk("17").home:
        skip("there is no JDK 17")
    unittest.main(verbosity=2)
