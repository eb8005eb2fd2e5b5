"""The command lines of a cluster's processes."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVICE_CIDR = "10.96.0.0/16"
# A label and not an annotation: kwok never notices that an annotation was taken away again.
NODE_LABEL = "kwok.x-k8s.io/node"
# A real kubelet's: the Lease lasts 40 s and is renewed every 10 s.
NODE_LEASE_SECONDS = 40


def etcd(paths, ports, options, part="etcd"):
    """etcd on loopback; without fsync it does not survive a power loss, only a SIGKILL."""
    client = f"http://127.0.0.1:{ports[part]}"
    peer = f"http://127.0.0.1:{ports[f'{part}-peer']}"
    argv = [f"--data-dir={paths[f'{part}-data']}", "--name=local",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=local={peer}", "--quota-backend-bytes=8589934592",
            "--log-level=warn"]
    if not options["fsync"]:
        argv.append("--unsafe-no-fsync")
    return argv


def etcd_pods(paths, ports, options):
    """A second one, which has the pods alone: their versions are lower than all others."""
    return etcd(paths, ports, options, "etcd-pods")


def kube_apiserver(paths, ports, options):
    """The API server; its audit log is what tests count writes by."""
    pki = paths["pki"]
    argv = [f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # a loopback address is no valid endpoint
            f"--secure-port={ports['kube-apiserver']}",
            f"--tls-cert-file={pki}/kube-apiserver.crt",
            f"--tls-private-key-file={pki}/kube-apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki}/service-account.pub",
            f"--service-account-signing-key-file={pki}/service-account.key",
            f"--service-cluster-ip-range={SERVICE_CIDR}",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true", "--profiling=false"]
    if options["audit"]:
        policy = HERE / "audit-policy.yaml" if options["audit"] is True else options["audit"]
        argv += [f"--audit-log-path={paths['audit-log']}",
                 f"--audit-policy-file={policy}",
                 # Never rotated: offsets into it stay valid.
                 "--audit-log-maxsize=102400", "--audit-log-format=json"]
    if options.get("pods_apart"):
        argv.append(f"--etcd-servers-overrides=/pods#http://127.0.0.1:{ports['etcd-pods']}")
    return argv + list(options["apiserver_flags"])


def kube_controller_manager(paths, ports, options):
    """Garbage collection, pod GC, default service accounts, node life cycle, namespaces."""
    pki = paths["pki"]
    return [f"--kubeconfig={paths['kubeconfigs']}/kube-controller-manager",
            "--use-service-account-credentials=true", "--leader-elect=false",
            f"--service-account-private-key-file={pki}/service-account.key",
            f"--root-ca-file={pki}/ca.crt", "--bind-address=127.0.0.1",
            f"--secure-port={ports['kube-controller-manager']}",
            "--kube-api-qps=500", "--kube-api-burst=1000",
            *options["controller_manager_flags"]]


def kube_scheduler(paths, ports, options):
    """Unthrottled, so that it is not what a test with many pods waits for."""
    return [f"--kubeconfig={paths['kubeconfigs']}/kube-scheduler", "--leader-elect=false",
            "--bind-address=127.0.0.1", f"--secure-port={ports['kube-scheduler']}",
            "--kube-api-qps=5000", "--kube-api-burst=10000", *options["scheduler_flags"]]


def kwok(paths, _ports, _options):
    """Simulated nodes: those with the label, behaving as stages.yaml says."""
    return [f"--kubeconfig={paths['kubeconfigs']}/kwok", f"--config={HERE}/stages.yaml",
            f"--manage-nodes-with-label-selector={NODE_LABEL}=fake",
            f"--node-lease-duration-seconds={NODE_LEASE_SECONDS}",
            "--node-ip=10.0.0.1", "--cidr=10.244.0.0/16"]


# By process name; the order is the one in which a cluster starts.
ARGUMENTS = {"etcd": etcd, "etcd-pods": etcd_pods, "kube-apiserver": kube_apiserver,
             "kube-controller-manager": kube_controller_manager,
             "kube-scheduler": kube_scheduler, "kwok": kwok}
PORTS = ["etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd-pods",
         "etcd-pods-peer"]
# The program of a process whose name is another one.
PROGRAMS = {"etcd-pods": "etcd"}

# Client certificates of the cluster's own parts: process name -> (user, groups).
USERS = {
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kwok": ("kwok", ("system:masters",)),
}
