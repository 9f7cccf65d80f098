"""Manual pages and completions as they are installed: man has no warnings, every option of --help is in the page, and
real shells offer what the tables of options contain. Needs man-db, bash, zsh and fish, no root."""
import http.server
import json
import os
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from kindling import BUILD, wait_for  # noqa: E402
from terminal import Terminal, plain  # noqa: E402

SHARE = BUILD + "/share"
PAGES = {"kindling": 1, "kindlingd": 8, "kindling-inject": 8, "kindlingd.yaml": 5, "kindling.yaml": 5}
BASH = SHARE + "/bash-completion/completions/"
FISH = SHARE + "/fish/vendor_completions.d/"


def man(page, *options):
    return subprocess.run(["man", "--warnings", "-E", "UTF-8", "-M", SHARE + "/man", *options, str(PAGES[page]), page],
                          capture_output=True, text=True, env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})


def run(*words):
    return subprocess.run([BUILD + "/bin/" + words[0], *words[1:]], capture_output=True, text=True, check=True).stdout


def options_of(text):
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.M))


def commands():
    return re.findall(r"^  (\w+) +\w", run("kindling", "--help").split("Commands:")[1].split("--socket")[0], re.M)


def seen(raw):
    """The text after the prompt as it looks after the shell has moved the cursor back and written parts again."""
    return re.sub(".\x08", "", plain(raw).split("IS-42")[-1].replace("\a", ""))


class Pages(unittest.TestCase):
    def test_man_finds_nothing_to_warn_of(self):
        for page in PAGES:
            done = man(page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)
            self.assertIn("NAME", done.stdout)

    def test_every_option_of_help_is_in_the_page(self):
        text = man("kindling").stdout
        sections = dict(re.findall(r"^   kindling ([\w -]+?)(?: \[COMMAND\])?\n(.*?)(?=^   kindling|^[A-Z])", text, re.M | re.S))
        for command in commands():
            if command in ("help", "version"):
                continue
            told = options_of(run("kindling", command, "--help"))
            self.assertIn("--help", told)
            self.assertEqual(told, set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", sections[command], re.M)), command)
        for program in ("kindlingd", "kindling-inject"):
            self.assertEqual(options_of(run(program, "--help")), options_of(man(program).stdout), program)

    def test_every_setting_is_in_the_page_with_its_default(self):
        text = re.sub(r"\s+", " ", man("kindlingd.yaml").stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            lines = re.findall(r"^([\w.]+): (.*)$", run("kindling", "config", "check", f.name), re.M)
        known = [(name, value) for name, value in lines if not value.startswith("none") and value[:1] != "/"]
        self.assertGreater(len(known), 25)
        for name, value in known:
            self.assertRegex(text, r" %s .{1,200}? Default: %s " % (re.escape(name), re.escape(value)))


class Shells(unittest.TestCase):
    def offered_by_bash(self, line):
        """What bash's own programmable completion offers for the words of @line, with the cursor at the last of them."""
        program = line.split()[0]
        words = line.split(" ")
        script = ". %s%s; COMP_WORDS=(%s); COMP_CWORD=%d; _%s 2>/dev/null; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
            BASH, program, " ".join("'%s'" % w for w in words), len(words) - 1, program)
        return subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def offered_by_fish(self, line):
        script = "source %s%s.fish; complete -C '%s'" % (FISH, line.split()[0], line)
        env = {**os.environ, "PATH": BUILD + "/bin:" + os.environ["PATH"], "HOME": self.home, "KINDLING_SOCKET": "/nowhere"}
        out = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, env=env).stdout
        return [line.split("\t")[0] for line in out.splitlines()]

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="kindling-test-")
        self.addCleanup(shutil.rmtree, self.home)

    def test_bash_and_fish_offer_every_option(self):
        for command in commands():
            if command in ("help", "version"):
                continue
            told = options_of(run("kindling", command, "--help"))
            self.assertEqual({w for w in self.offered_by_bash("kindling %s --" % command)}, told, command)
            fish = {w for w in self.offered_by_fish("kindling %s --" % command)}
            self.assertEqual(fish - {"--socket", "--version"}, told - {"--version", "--socket"}, command)
        for program in ("kindlingd", "kindling-inject"):
            told = options_of(run(program, "--help"))
            self.assertEqual(set(self.offered_by_bash(program + " --")), told)
            self.assertEqual(set(self.offered_by_fish(program + " --")), told)

    def test_words_and_arguments(self):
        for offered in (self.offered_by_bash, self.offered_by_fish):
            self.assertEqual(sorted(offered("kindling re")), ["record", "report"])
            self.assertEqual(sorted(offered("kindling top --sort ")), ["self", "total"])
            self.assertIn("pb.gz", offered("kindling report 4711 --format "))
            self.assertIn("check", offered("kindling config "))
            self.assertEqual(offered("kindlingd --log-level d"), ["debug"])
        self.assertEqual(self.offered_by_bash("kindling report --format = sp"), ["speedscope"])
        self.assertEqual(self.offered_by_bash("kindling help thr"), ["threads"])

    def typed(self, shell, begin, keys, until):
        env = {"HOME": self.home, "TERM": "dumb", "PATH": BUILD + "/bin:" + os.environ["PATH"], "PS1": "$ ",
               "KINDLING_SOCKET": "/nowhere", "INPUTRC": "/dev/null"}
        os.environ, before = env, os.environ
        try:
            terminal = Terminal(shell, 24, 100)
        finally:
            os.environ = before
        with terminal:
            terminal.type(begin + "; echo IS-$((40+2))\n")
            wait_for("a prompt", lambda: "IS-42" in terminal.raw())
            terminal.type(keys)
            wait_for("%r from %s" % (until, shell[0]), lambda: until in seen(terminal.raw()))

    def test_tab_in_a_real_bash(self):
        self.typed(["bash", "--norc", "-i"], ". %skindling" % BASH, "kindling thr\t--so\twa\t", "kindling threads --sort wait ")

    def test_tab_in_a_real_zsh(self):
        begin = "fpath=(%s/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D" % SHARE
        self.typed(["zsh", "-f", "-i"], begin, "kindling thr\t--so\tna\t", "kindling threads --sort=name ")


class Silly(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"targets": [
            {"pid": 7, "name": "shop.Main", "state": "streaming"}, {"pid": 8, "name": "$(touch /tmp/owned)", "state": "failed"},
            {"pid": 9, "name": "`id`", "state": "found"}, {"pid": 10, "name": "-rf", "state": "found"},
            {"pid": 11, "name": "over", "state": "gone"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return ""

    def log_message(self, *unused):
        pass


class Targets(unittest.TestCase):
    def test_names_of_jvms_are_quoted_for_the_shell(self):
        with tempfile.TemporaryDirectory() as directory, socketserver.UnixStreamServer(directory + "/sock", Silly) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.assertEqual(run("kindling", "--socket", directory + "/sock", "help", "--targets"), "7\tshop.Main\n8\t\n9\t\n10\t\n")
            server.shutdown()


if __name__ == "__main__":
    unittest.main(verbosity=2)
