"""deploy/kubernetes and deploy/helm: do they agree with each other and with the systemd unit?

manifests.py          without helm: a DaemonSet that is of this chart, with the rights of the unit, and profiles
manifests.py --helm   with helm (Go builds it where it is missing): lint, every deploy/helm/ci file rendered and read by
                      Kubernetes' own types, and what the schema has to refuse
manifests.py --write  makes deploy/kubernetes/daemonset.yaml anew, with helm"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(HERE, "..", "..", "deploy")
CHART, CI = DEPLOY + "/helm/kindling", DEPLOY + "/helm/ci"
PLAIN = DEPLOY + "/kubernetes/daemonset.yaml"
BUILD = os.environ.get("KINDLING_BUILD", os.path.join(HERE, "..", "..", "build", "jvm"))
KUBERNETES = "1.35.0"
HEAD = "# Made of the chart, %s: tests/harness/manifests.py --write\n"
# what the schema or the chart refuse
WRONG = ("capabilities={CAP_KILL}", "config.socket=/x", "config.target.mode=opt-in", "stateDir=relative", "privileged=1",
         "image.digest=sha256:1", "seccomp.type=Off", "colour=red", "socketDir=/run/kindling/")


def python_with(module):
    """This script by Debian's Python, where only that has the package."""
    try:
        return __import__(module)
    except ImportError:
        if sys.executable == "/usr/bin/python3" or not os.path.exists("/usr/bin/python3"):
            print("SKIPPED: needs python3-" + module)
            sys.exit(1 if os.environ.get("CI") else 77)
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])


yaml = python_with("yaml")


def fingerprint():
    """Of the chart and the values that the manifest is made with."""
    text = hashlib.sha256()
    for path in sorted(glob.glob(CHART + "/**/*", recursive=True)) + [CI + "/plain.yaml"]:
        if os.path.isfile(path):
            with open(path, "rb") as f:
                text.update(os.path.relpath(path, DEPLOY).encode() + b"\0" + f.read() + b"\0")
    return text.hexdigest()[:16]


def documents(text):
    return {d["kind"]: d for d in list(yaml.safe_load_all(text)) if d}


def unit_capabilities():
    with open(DEPLOY + "/systemd/kindlingd.service") as f:
        return {w[4:] for w in re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M).group(1).split()}


def check_plain():
    with open(PLAIN) as f:
        text = f.read()
    if not text.startswith(HEAD % fingerprint()):
        yield "deploy/kubernetes/daemonset.yaml is of another chart: tests/harness/manifests.py --write"
    found = documents(text)
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    if set(security["capabilities"]["add"]) != unit_capabilities():
        yield "capabilities differ from the unit's: %s" % sorted(set(security["capabilities"]["add"]) ^ unit_capabilities())
    for what, holds in {
            "hostPID": pod["hostPID"] is True,
            "no token": pod["automountServiceAccountToken"] is False is found["ServiceAccount"]["automountServiceAccountToken"],
            "no rights on the API server": not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} & set(found),
            "a read-only root": security["readOnlyRootFilesystem"] is True,
            "not privileged": security["privileged"] is False and security["allowPrivilegeEscalation"] is False,
            "nothing of the default capabilities": security["capabilities"]["drop"] == ["ALL"],
            "a limit of memory": "memory" in pod["containers"][0]["resources"]["limits"],
            "a priority below any application's": found["PriorityClass"]["value"] < 0,
            "the class that it makes": pod["priorityClassName"] == found["PriorityClass"]["metadata"]["name"],
            "the namespace of all": len({d["metadata"].get("namespace", "kindling") for d in found.values()}) == 1}.items():
        if not holds:
            yield "daemonset.yaml: " + what


def check_profiles():
    with open(DEPLOY + "/kubernetes/seccomp.json") as f:
        profile = json.load(f)
    refused = {name for rule in profile["syscalls"] for name in rule["names"]}
    needed = {"setns", "bpf", "perf_event_open", "process_vm_readv", "ptrace", "openat2", "mount", "umount2", "move_mount",
              "fsopen", "fsmount", "mount_setattr", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "memfd_create", "unshare",
              "seccomp"}
    if refused & needed:
        yield "seccomp.json refuses what kindlingd needs: %s" % sorted(refused & needed)
    with open(DEPLOY + "/kubernetes/apparmor") as f:
        listed = {w.upper() for w in re.findall(r"^  capability (\w+),$", f.read(), re.M)}
    if listed != unit_capabilities():
        yield "capabilities of the AppArmor profile differ from the unit's: %s" % sorted(listed ^ unit_capabilities())


# ---- with helm ------------------------------------------------------------------------------------------------------


def helm():
    found = shutil.which("helm") or BUILD + "/go/helm"
    if os.path.exists(found):
        return found
    if not shutil.which("go"):
        print("SKIPPED: needs helm, or go to build it")
        sys.exit(1 if os.environ.get("CI") else 77)
    subprocess.run(["go", "install", "helm.sh/helm/v3/cmd/helm@v3.22.0"], check=True,
                   env={**os.environ, "GOBIN": os.path.dirname(found)})
    return found


def render(values, *more):
    done = subprocess.run([helm(), "template", "kindling", CHART, "--namespace", "kindling", "--kube-version", KUBERNETES,
                           "-f", values, *more], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def write():
    with open(PLAIN, "w") as f:
        f.write(HEAD % fingerprint() + render(CI + "/plain.yaml"))


def strict(path):
    """Kubernetes' own Go types read it, and know every field: a sentence, or None."""
    if not shutil.which("go"):
        return None
    done = subprocess.run(["go", "run", ".", path], cwd=HERE + "/go/manifests", capture_output=True, text=True)
    return None if done.returncode == 0 else "%s: %s" % (os.path.basename(path), done.stderr)


def check_helm():
    for values in sorted(glob.glob(CI + "/*.yaml")):
        name = os.path.basename(values)
        done = subprocess.run([helm(), "lint", "--strict", CHART, "-f", values], capture_output=True, text=True)
        if done.returncode != 0:
            yield "helm lint with %s: %s" % (name, done.stdout)
        text = render(values)
        if not text:
            yield "helm template with " + name
            continue
        with tempfile.NamedTemporaryFile("w", suffix="-" + name) as f:
            f.write(text)
            f.flush()
            wrong = strict(f.name)
        if wrong:
            yield wrong
    with open(PLAIN) as f:
        if f.read() != HEAD % fingerprint() + render(CI + "/plain.yaml"):
            yield "daemonset.yaml is not what helm makes"
    for wrong in WRONG:
        if render(CI + "/plain.yaml", "--set", wrong) is not None:
            yield "the chart takes %s" % wrong
    old = render(CI + "/all.yaml", "--kube-version", "1.28.0")
    if not old or "container.apparmor.security.beta.kubernetes.io/kindlingd: localhost/kindlingd" not in old:
        yield "on 1.28 AppArmor's profile is no annotation"


def main():
    if sys.argv[1:] == ["--write"]:
        write()
    wrong = list(check_plain()) + list(check_profiles())
    if sys.argv[1:] == ["--helm"]:
        wrong += check_helm()
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
