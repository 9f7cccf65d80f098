"""A containerd for one test, and pods in it, made by the CRI as a kubelet makes them. The message types come from the
descriptor inside containerd's program. Needs root, containerd, python3-grpcio and python3-protobuf."""
import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import uuid
import zlib

from kindling import wait_for

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError:  # the caller skips
    grpc = None

SERVICE = "runtime.v1.RuntimeService"
# the path that k3s uses: no other containerd of this machine has it, and the daemon looks there
STATE = "/run/k3s/containerd"
LOCK = "/tmp/kindling-test-containerd.lock"


def descriptor(program):
    """The FileDescriptorProto of CRI v1, one of the gzipped ones in the program's data."""
    with open(program, "rb") as f:
        data = f.read()
    at = -1
    while (at := data.find(b"\x1f\x8b\x08", at + 1)) >= 0:
        try:
            text = zlib.decompressobj(31).decompress(data[at:at + 400000])
        except zlib.error:
            continue
        if b"runtime/v1/api.proto" not in text[:200] and b"\x0a\x09api.proto" not in text[:12]:
            continue
        found = descriptor_pb2.FileDescriptorProto.FromString(text)
        if found.package == "runtime.v1":
            del found.dependency[:]  # field options of gogoproto, which do not matter here
            return found
    raise AssertionError("no descriptor of runtime.v1 in " + program)


class Containerd:
    def __init__(self):
        self.lock = open(LOCK, "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.dir = tempfile.mkdtemp(prefix="kindling-containerd-")
        os.chmod(self.dir, 0o711)
        os.makedirs(STATE, exist_ok=True)
        self.socket = STATE + "/containerd.sock"
        with open(self.dir + "/config.toml", "w") as f:
            f.write("""version = 2
root = "%s/root"
state = "%s"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.grpc.v1.introspection"]
[grpc]
  address = "%s"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "localhost/pause:1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    pod_annotations = ["kindling.io/*", "team"]
""" % (self.dir, STATE, self.socket))
        self.log = open(self.dir + "/log", "wb")
        self.process = subprocess.Popen(["containerd", "-c", self.dir + "/config.toml"], stdout=self.log, stderr=self.log)
        self.pods, self.channel = [], None
        try:
            self.begin()
        except BaseException:  # only this test uses it so far, and it would outlive the test
            self.end()
            raise

    def begin(self):
        pool = descriptor_pool.DescriptorPool()
        messages = descriptor(shutil.which("containerd"))
        pool.Add(messages)
        file = pool.FindFileByName(messages.name)
        self.messages = message_factory.MessageFactory(pool)
        self.methods = file.services_by_name["RuntimeService"].methods_by_name
        self.channel = grpc.insecure_channel("unix://" + self.socket)
        wait_for("containerd's CRI: " + self.dir + "/log", lambda: self.answers())

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("containerd ended: " + self.read_log())
        try:
            return any(c["type"] == "RuntimeReady" and c["status"] for c in self.call("Status")["status"]["conditions"])
        except grpc.RpcError:
            return False

    def read_log(self):
        with open(self.dir + "/log") as f:
            return f.read()[-2000:]

    def call(self, method, **request):
        m = self.methods[method]
        made = json_format.ParseDict(request, self.messages.GetPrototype(m.input_type)())
        answer = self.channel.unary_unary("/%s/%s" % (SERVICE, method), type(made).SerializeToString,
                                          self.messages.GetPrototype(m.output_type).FromString)(made, timeout=60)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)

    def load(self, archive):
        subprocess.run(["ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", "--no-unpack", archive], check=True,
                       stdout=subprocess.DEVNULL)

    def end(self):
        try:
            for pod in list(self.pods):
                pod.remove()
        finally:
            if self.channel:
                self.channel.close()
            self.process.terminate()
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.log.close()
            with open("/proc/self/mounts") as f:
                left = [line.split()[1] for line in f]
            for where in reversed(left):
                if where.startswith((self.dir, STATE)):
                    subprocess.run(["umount", "-l", where])
            shutil.rmtree(self.dir, ignore_errors=True)
            shutil.rmtree(STATE, ignore_errors=True)
            try:
                os.rmdir(os.path.dirname(STATE))
            except OSError:
                pass
            self.lock.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()


class Pod:
    """Makes a sandbox and containers in it, as a kubelet makes them from a pod's spec."""

    def __init__(self, containerd, namespace, name, labels=None, annotations=None, host_pid=False, privileged=False):
        self.containerd, self.namespace, self.name = containerd, namespace, name
        self.uid = str(uuid.uuid4())
        self.pid_mode = "NODE" if host_pid else "CONTAINER"
        names = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": self.uid}
        self.names = names
        self.config = {
            "metadata": {"name": name, "uid": self.uid, "namespace": namespace}, "labels": {**names, **(labels or {})},
            "annotations": annotations or {}, "log_directory": containerd.dir + "/logs",
            "linux": {"cgroup_parent": "/kubepods/burstable/pod" + self.uid,
                      "security_context": {"namespace_options": {"network": "NODE", "pid": self.pid_mode, "ipc": "POD"},
                                           "privileged": privileged,
                                           "seccomp": {"profile_type": "RuntimeDefault"}}}}
        self.id = containerd.call("RunPodSandbox", config=self.config)["pod_sandbox_id"]
        containerd.pods.append(self)

    def run(self, name, image, command, env=(), mounts=(), args=(), context=None, privileged=False):
        """Starts a container; returns (its id, its first process)."""
        security = {"namespace_options": self.config["linux"]["security_context"]["namespace_options"],
                    "privileged": privileged, **(context or {})}
        config = {"metadata": {"name": name}, "image": {"image": image}, "command": list(command), "args": list(args),
                  "envs": [dict(zip(("key", "value"), e.split("=", 1))) for e in env],
                  "mounts": [{"host_path": a, "container_path": b, "readonly": ro} for a, b, ro in mounts],
                  "labels": {**self.names, "io.kubernetes.container.name": name}, "log_path": name + ".log",
                  "linux": {"resources": {"oom_score_adj": 1000}, "security_context": security}}
        made = self.containerd.call("CreateContainer", pod_sandbox_id=self.id, config=config, sandbox_config=self.config)
        cid = made["container_id"]
        self.containerd.call("StartContainer", container_id=cid)
        status = self.containerd.call("ContainerStatus", container_id=cid, verbose=True)
        return cid, json.loads(status["info"]["info"])["pid"]

    def logs(self, name):
        try:
            with open(self.containerd.dir + "/logs/" + name + ".log") as f:
                return f.read()[-20000:]
        except FileNotFoundError:
            return ""

    def execute(self, cid, *command, seconds=60):
        """Runs a command in the container, as kubectl exec and exec probes do: (exit status, output)."""
        done = self.containerd.call("ExecSync", container_id=cid, cmd=list(command), timeout=seconds)
        text = [base64.b64decode(done.get(k, "")).decode() for k in ("stdout", "stderr")]
        return done.get("exit_code", 0), text[0] + text[1]

    def remove(self):
        self.containerd.call("StopPodSandbox", pod_sandbox_id=self.id)
        self.containerd.call("RemovePodSandbox", pod_sandbox_id=self.id)
        self.containerd.pods.remove(self)
