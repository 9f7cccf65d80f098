"""What container engines leave on the host for a container: its bundle, its names in annotations or in files beside
it, its cgroup. The containers themselves are run by runc, as under the engines."""
import json
import os
import random
import shutil
import threading

making = threading.Lock()


class Engine:
    """@image: as the pod's author writes it; @digest: sha256:..., if the engine knows it; @notes: annotations of the
    pod that the engine passes on, or labels of the container."""
    tops = ()  # the engine's own directories on the host

    def __init__(self, name, namespace, pod, image, digest=None, notes=None):
        self.name, self.namespace, self.pod, self.image, self.digest = name, namespace, pod, image, digest
        self.notes = notes or {}
        self.id = "%064x" % random.getrandbits(256)
        self.uid = "%08x-0000-4000-8000-%012x" % (random.getrandbits(32), random.getrandbits(48))
        self.made = []

    def make_directory(self, path):
        """Remembers paths that did not exist before, to remove them."""
        with making:
            missing = []
            while not os.path.isdir(path):
                missing.append(path)
                path = os.path.dirname(path)
            for one in reversed(missing):
                os.mkdir(one)
                self.made.append(one)

    def write(self, path, content):
        self.make_directory(os.path.dirname(path))
        with open(path, "w") as f:
            json.dump(content, f)

    def put(self, config):
        """Moves config.json to where the engine keeps its bundles; returns that directory."""
        config["annotations"] = self.annotations()
        config["linux"]["cgroupsPath"] = self.cgroup()
        self.write(self.bundle() + "/config.json", config)
        return self.bundle()

    def take_away(self):
        with making:
            for path in reversed(self.made):
                if os.path.basename(path) == self.id:
                    shutil.rmtree(path, ignore_errors=True)
                elif os.path.isdir(path) and not os.listdir(path):
                    os.rmdir(path)


class Containerd(Engine):
    def bundle(self):
        return "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + self.id

    def cgroup(self):
        return "/kubepods/burstable/pod%s/%s" % (self.uid, self.id)

    def annotations(self):
        key = "io.kubernetes.cri."
        return {key + "container-name": self.name, key + "container-type": "container",
                key + "image-name": self.image + ("@" + self.digest if self.digest else ""),
                key + "sandbox-id": "0" * 64, key + "sandbox-name": self.pod, key + "sandbox-namespace": self.namespace,
                key + "sandbox-uid": self.uid, **self.notes}


class Crio(Engine):
    def bundle(self):
        return "/run/containers/storage/overlay-containers/%s/userdata" % self.id

    def cgroup(self):
        return "/kubepods.slice/kubepods-pod%s.slice/crio-%s.scope" % (self.uid.replace("-", "_"), self.id)

    def annotations(self):
        found = {"io.kubernetes.container.name": self.name, "io.kubernetes.pod.name": self.pod,
                 "io.kubernetes.pod.namespace": self.namespace, "io.kubernetes.pod.uid": self.uid,
                 "io.container.manager": "cri-o", "io.kubernetes.cri-o.ContainerType": "container",
                 "io.kubernetes.cri-o.Image": self.image, "io.kubernetes.cri-o.ImageName": self.image, **self.notes}
        if self.digest:
            found["io.kubernetes.cri-o.ImageRef"] = self.digest.split(":")[1]
        return found


class Docker(Engine):
    """Without Kubernetes there are no annotations: everything is in a file of the engine's own."""

    def bundle(self):
        return "/run/containerd/io.containerd.runtime.v2.task/moby/" + self.id

    def cgroup(self):
        return "/docker/" + self.id

    def annotations(self):
        return None

    def put(self, config):
        self.write("/var/lib/docker/containers/%s/config.v2.json" % self.id, {
            "ID": self.id, "Name": "/" + self.name, "Image": self.digest or "",
            "Config": {"Image": self.image, "Labels": self.notes}})
        return super().put(config)
