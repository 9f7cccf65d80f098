"""Pods, namespaces and images: real containers of runc whose bundles are where containerd, CRI-O and Docker keep
theirs. Checks which JVMs rules with such names select, and which are left alone after a crash."""
import os
import shutil
import signal
import time
import unittest

from bundle import Container, Jdk, shared_end
from engines import Containerd, Crio, Docker
from kindling import Daemon, agent_copies, classes, skip

MAJOR = "17"
ONE, OTHER = "sha256:" + "1a" * 32, "sha256:" + "2b" * 32


def targets(rules):
    return "targets:\n  mode: opt-in\n  attach_rate: 0\n  rules:\n" + "".join("    - %s\n" % rule for rule in rules)


class Names(unittest.TestCase):
    def start(self, engine, main="Ticks", **more):
        c = Container(Jdk(MAJOR), engine=engine, main=main, **more)
        self.addCleanup(c.down)
        return c

    def kept_out(self, daemon, c, word):
        t = daemon.wait_state(c.pid, "excluded")
        self.assertIn(word, t["reason"])
        self.assertEqual(agent_copies(c.pid), 0)
        self.assertEqual([name for name in os.listdir(c.tmp_dir()) if name.startswith(".")], [])

    def test_every_engines_names_are_shown(self):
        cart = self.start(Containerd("cart", "shop", "cart-7d9f-x2", "reg.example/shop/cart:1.2"))
        pay = self.start(Crio("pay", "bank", "pay-0", "reg.example/bank/pay:3", ONE))
        web = self.start(Docker("web_1", "", "", "tomcat:10", OTHER))
        with Daemon(targets(["allow: { container: %s }" % name for name in ("cart", "pay", "web_1")])) as daemon:
            for c, pod, container, image, digest in (
                    (cart, "shop/cart-7d9f-x2", "cart", "reg.example/shop/cart:1.2", None),
                    (pay, "bank/pay-0", "pay", "reg.example/bank/pay:3", ONE), (web, None, "web_1", "tomcat:10", OTHER)):
                t = daemon.wait_state(c.pid, "streaming")
                self.assertEqual((t["container_id"], t["pod"], t["container"], t["image"], t["image_digest"]),
                                 (c.name, pod, container, image, digest))
            self.assertRegex(daemon.cli("status").stdout, r"shop/cart-7d9f")
            daemon.cli("detach", "bank/pay-0")  # the name of the pod alone is enough
            daemon.wait_state(pay.pid, "detached")

    def test_labels_of_each_engine(self):
        cart = self.start(Containerd("cart", "shop", "cart-7d9f-x2", "reg.example/shop/cart:1.2"),
                          env=["OTEL_SERVICE_NAME=checkout", "OTEL_RESOURCE_ATTRIBUTES=service.namespace=eu"])
        pay = self.start(Crio("pay", "bank", "pay-0", "reg.example/bank/pay:3", ONE, {"app.kubernetes.io/name": "payment"}))
        web = self.start(Docker("web_1", "", "", "tomcat:10", OTHER, {"com.docker.compose.service": "web"}))
        bare = self.start(Docker("db_1", "", "", "db"))
        with Daemon(targets(["allow: { container: %s }" % name for name in ("cart", "pay", "web_1", "db_1")])) as daemon:
            for c, expected in (
                    (cart, dict(service="checkout", namespace="eu", pod_namespace="shop", pod="cart-7d9f-x2", container="cart",
                                image="reg.example/shop/cart:1.2", version="1.2")),
                    (pay, dict(service="payment", namespace="bank", pod_namespace="bank", pod="pay-0", container="pay",
                               image="reg.example/bank/pay:3", version="3")),
                    (web, dict(service="web", container="web_1", image="tomcat:10", version="10")),
                    (bare, dict(service="db_1", container="db_1", image="db"))):
                labels = daemon.wait_state(c.pid, "streaming")["labels"]
                self.assertEqual({k: v for k, v in labels.items() if k not in ("host", "node")}, expected)

    def test_rules_by_namespace(self):
        cart = self.start(Containerd("cart", "shop", "cart-0", "reg/cart:1"))
        pay = self.start(Crio("pay", "shop", "pay-0", "reg/pay:1"))
        proxy = self.start(Containerd("proxy", "kube-system", "proxy-0", "reg/proxy:1"))
        stranger = self.start(Crio("x", "else", "x-0", "reg/x:1"))
        with Daemon(targets(["deny: { namespace: kube-* }", "allow: { namespace: shop }"])) as daemon:
            daemon.wait_state(cart.pid, "streaming")
            daemon.wait_state(pay.pid, "streaming")
            self.kept_out(daemon, proxy, 'targets.rules[0]')
            self.kept_out(daemon, stranger, "opt-in")
            done = daemon.cli("attach", "kube-system/proxy-0", check=False)
            self.assertEqual((done.returncode, "targets.rules[0]" in done.stderr), (1, True), done)

    def test_rules_by_image_pod_container_and_id(self):
        one = self.start(Containerd("a", "ns", "a-0", "reg.example/shop/cart:1.2"))
        two = self.start(Crio("b", "ns", "b-0", "reg.example/shop/cart:1.3"))
        three = self.start(Docker("c_1", "", "", "reg.example/shop/other:1"))
        four = self.start(Containerd("d", "ns", "d-0", "reg.example/d:1"))
        rules = ['deny: { image: "*/cart:1.3" }', 'allow: { image: "reg.example/shop/*" }', "deny: { pod: ns/e-0 }",
                 "allow: { container: %s }" % four.name[:12]]
        with Daemon(targets(rules)) as daemon:
            for c in (one, three, four):
                daemon.wait_state(c.pid, "streaming")
            self.kept_out(daemon, two, "targets.rules[0]")
            daemon.stop()
            daemon.configure(targets(["deny: { pod: ns/a-0 }", 'allow: { namespace: "?s" }', "deny: { container: c_1 }"]))
            daemon.start()
            self.kept_out_again(daemon, one, "targets.rules[0]")
            self.kept_out_again(daemon, three, "targets.rules[2]")
            daemon.wait_state(two.pid, "streaming")

    def kept_out_again(self, daemon, c, word):
        """An agent that was in the JVM is not active any more: it sleeps, or its thread has ended."""
        self.assertIn(word, daemon.wait_state(c.pid, "excluded")["reason"])
        with open("/proc/%d/timers" % c.pid) as f:
            self.assertNotIn("ID:", f.read())

    def crash(self, daemon, c):
        os.kill(c.pid, signal.SIGSEGV)
        daemon.wait_state(c.pid, "gone")

    def test_a_crash_keeps_us_from_the_same_image_of_its_owner_whatever_its_name(self):
        options = dict(options=["-XX:-CreateCoredumpOnCrash", "-Dkindling=names"])
        victim = self.start(Crio("a", "ns", "a-0", "reg/a:1", ONE), **options)
        twin = self.start(Containerd("a", "ns", "a-2", "mirror/a", ONE), **options)
        stranger = self.start(Containerd("a", "ns2", "a-0", "reg/a:1", ONE), **options)
        other = self.start(Crio("a", "ns", "a-1", "reg/a:1", OTHER), **options)
        with Daemon(targets(['allow: { command: "*-Dkindling=names*" }'])) as daemon:
            for c in (victim, twin, stranger, other):
                daemon.wait_state(c.pid, "streaming")
            self.crash(daemon, victim)
            self.assertIn("for process %d" % victim.pid, daemon.wait_state(twin.pid, "excluded")["reason"])
            blocked = daemon.status()["blocked"]
            self.assertEqual(len(blocked), 1)
            self.assertIn(ONE, blocked[0]["cohort"])
            time.sleep(0.5)  # nothing happens to those that are none of them
            self.assertEqual(daemon.target(other.pid)["state"], "streaming")
            self.assertEqual(daemon.target(stranger.pid)["state"], "streaming")
            new = self.start(Crio("a", "ns", "a-3", "yet/another:name", ONE), **options)
            self.assertIn("left alone until", daemon.wait_state(new.pid, "excluded")["reason"])
            self.assertEqual(agent_copies(new.pid), 0)

    def test_without_a_digest_it_is_the_name_and_the_jdk(self):
        options = dict(options=["-XX:-CreateCoredumpOnCrash", "-Dkindling=tags"])
        victim = self.start(Containerd("a", "ns", "a-0", "reg/a:1"), **options)
        twin = self.start(Containerd("a", "ns", "a-1", "reg/a:1"), **options)
        rebuilt = self.start(Containerd("a", "ns", "a-2", "reg/a:1"), own_jdk=True, libjvm_date=1700000000, **options)
        with Daemon(targets(['allow: { command: "*-Dkindling=tags*" }'])) as daemon:
            for c in (victim, twin, rebuilt):
                daemon.wait_state(c.pid, "streaming")
            self.crash(daemon, victim)
            daemon.wait_state(twin.pid, "excluded")
            self.assertRegex(daemon.status()["blocked"][0]["cohort"], r"^image reg/a:1, libjvm of \d+ bytes of ")
            time.sleep(0.5)  # nothing happens to those that are none of them
            self.assertEqual(daemon.target(rebuilt.pid)["state"], "streaming")


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("runc"):
        skip("needs root and runc")
    if not Jdk(MAJOR).home:
        skip("there is no JDK " + MAJOR)
    classes()
    try:
        unittest.main(verbosity=2)
    finally:
        shared_end()
