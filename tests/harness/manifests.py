"""deploy/kubernetes and deploy/helm: do they agree with each other and with the systemd unit?

manifests.py          without helm: a DaemonSet that is of this chart, with the rights of the unit, and profiles
manifests.py --helm   with helm (Go builds it where it is missing): lint, every deploy/helm/ci file rendered and read by
                      Kubernetes' own types, and what the schema has to refuse
manifests.py --write  makes deploy/kubernetes/daemonset.yaml and sidecars.yaml anew, with helm"""
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
# folder: the values with which helm makes the files in it
MADE = {DEPLOY + "/kubernetes/daemonset.yaml": CI + "/plain.yaml", DEPLOY + "/kubernetes/sidecars.yaml": CI + "/sidecars.yaml"}
BUILD = os.environ.get("KINDLING_BUILD", os.path.join(HERE, "..", "..", "build", "jvm"))
KUBERNETES = "1.35.0"
HEAD = "# Made of the chart, %s: tests/harness/manifests.py --write\n"
# values that the schema or the chart must refuse
WRONG = ("capabilities={CAP_KILL}", "config.socket=/x", "config.target.mode=opt-in", "stateDir=relative", "privileged=1",
         "image.digest=sha256:1", "seccomp.type=Off", "colour=red", "socketDir=/run/kindling/", "metrics.port=0", "metrics.enabled=maybe", "filters.socket=/x")


def python_with(module):
    """Runs this script by Debian's Python if only that one has the package."""
    try:
        return __import__(module)
    except ImportError:
        if sys.executable == "/usr/bin/python3" or not os.path.exists("/usr/bin/python3"):
            print("SKIPPED: needs python3-" + module)
            sys.exit(1 if os.environ.get("CI") else 77)
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])


yaml = python_with("yaml")


def fingerprint(values):
    """Hash of the chart and of the values from which the manifest is made."""
    text = hashlib.sha256()
    for path in sorted(glob.glob(CHART + "/**/*", recursive=True)) + [values]:
        if os.path.isfile(path):
            with open(path, "rb") as f:
                text.update(os.path.relpath(path, DEPLOY).encode() + b"\0" + f.read() + b"\0")
    return text.hexdigest()[:16]


def documents(text):
    return {d["kind"]: d for d in list(yaml.safe_load_all(text)) if d}


def unit_capabilities():
    with open(DEPLOY + "/systemd/kindlingd.service") as f:
        return {w[4:] for w in re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M).group(1).split()}


def check_made(path):
    name = os.path.basename(path)
    with open(path) as f:
        text = f.read()
    if not text.startswith(HEAD % fingerprint(MADE[path])):
        yield "deploy/kubernetes/%s is of another chart: tests/harness/manifests.py --write" % name
    found = documents(text)
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    containers = {c["name"]: c for c in pod["containers"]}
    granted = set(containers["kindlingd"]["securityContext"]["capabilities"]["add"])
    if granted != unit_capabilities():
        yield "%s: capabilities differ from the unit's: %s" % (name, sorted(granted ^ unit_capabilities()))
    for what, holds in {
            "hostPID": pod["hostPID"] is True,
            "no token": pod["automountServiceAccountToken"] is False is found["ServiceAccount"]["automountServiceAccountToken"],
            "no rights on the API server": not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} & set(found),
            "a priority below any application's": found["PriorityClass"]["value"] < 0,
            "the class that it makes": pod["priorityClassName"] == found["PriorityClass"]["metadata"]["name"],
            "the namespace of all": len({d["metadata"].get("namespace", "kindling") for d in found.values()}) == 1}.items():
        if not holds:
            yield "%s: %s" % (name, what)
    for c in containers.values():
        security = c["securityContext"]
        for what, holds in {
                "a read-only root": security["readOnlyRootFilesystem"] is True,
                "not privileged": security["privileged"] is False and security["allowPrivilegeEscalation"] is False,
                "nothing of the default capabilities": security["capabilities"]["drop"] == ["ALL"],
                "no more than the daemon's": set(security["capabilities"].get("add", [])) <= granted,
                "a limit of memory": "memory" in c["resources"]["limits"]}.items():
            if not holds:
                yield "%s: %s: %s" % (name, c["name"], what)


def check_sidecars():
    """The reason for each capability."""
    with open(DEPLOY + "/kubernetes/sidecars.yaml") as f:
        pod = documents(f.read())["DaemonSet"]["spec"]["template"]["spec"]
    containers = {c["name"]: c for c in pod["containers"]}
    if list(containers) != ["filters", "kindlingd", "metrics"]:  # the order in which the containers start
        yield "sidecars.yaml: its containers are %s" % sorted(containers)
        return
    profiles = {name: c["securityContext"]["seccompProfile"]["type"] for name, c in containers.items()}
    if profiles != {"kindlingd": "Localhost", "filters": "Unconfined", "metrics": "RuntimeDefault"}:
        yield "sidecars.yaml: seccomp profiles: %s" % profiles
    socket = {e["name"]: e.get("value") for e in containers["kindlingd"]["env"]}.get("KINDLING_FILTERS_SOCKET")
    if containers["filters"]["command"][2:] != [socket]:
        yield "sidecars.yaml: kindlingd asks at %s" % socket
    if "add" in containers["metrics"]["securityContext"]["capabilities"]:
        yield "sidecars.yaml: metrics has capabilities"


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


def check_settings():
    """The chart takes every setting that kindlingd has, or says that it does not."""
    with open(DEPLOY + "/kindlingd.yaml") as f:
        settings = set(yaml.safe_load(f))
    with open(CHART + "/values.schema.json") as f:
        known = set(json.load(f)["properties"]["config"]["properties"])
    if settings != known:
        yield "values.schema.json and kindlingd.yaml have other settings: %s" % sorted(settings ^ known)


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
    for path, values in MADE.items():
        with open(path, "w") as f:
            f.write(HEAD % fingerprint(values) + render(values))


def strict(path):
    """Reads the manifest by Kubernetes' own Go types, which must know every field: an error's sentence, or None."""
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
    for path, values in MADE.items():
        with open(path) as f:
            if f.read() != HEAD % fingerprint(values) + render(values):
                yield "%s is not what helm makes" % os.path.basename(path)
    for wrong in WRONG:
        if render(CI + "/plain.yaml", "--set", wrong) is not None:
            yield "the chart takes %s" % wrong
    old = render(CI + "/all.yaml", "--kube-version", "1.28.0")
    if not old or "container.apparmor.security.beta.kubernetes.io/kindlingd: localhost/kindlingd" not in old:
        yield "on 1.28 AppArmor's profile is no annotation"


def main():
    if sys.argv[1:] == ["--write"]:
        write()
    wrong = [line for path in MADE for line in check_made(path)] + list(check_sidecars()) + list(check_profiles()) + list(check_settings())
    if sys.argv[1:] == ["--helm"]:
        wrong += check_helm()
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
