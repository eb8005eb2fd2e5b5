"""A real Kubernetes control plane on this machine, for tests and for people.

    with Cluster(nodes=2) as cluster:                  # ends with this process, whatever ends it
        cluster.kubectl("apply", "-f", "job.yaml")
        status, pods = cluster.api("GET", "/api/v1/pods")
        cluster.kill_node("node-0")

    Cluster(name="demo", owned=False).start()          # stays until Cluster.attach("demo").stop()
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from . import components
from .api import ApiClient
from .audit import AuditMixin
from .etcd import EtcdMixin
from .nodes import NodesMixin
from .pki import Authority, write_kubeconfig
from .remote import FolderLock, SupervisorClient, processes_of, remove_folder
from .tools import DEFAULT_K8S_VERSION, cache_root, ensure_tools
from .waiting import ClusterError, log_tail, say, wait_for

ADMIN = ("admin", ("system:masters",))
# Three seconds on an idle machine; a loaded one with cold page cache gets forty times that.
READY_LIMIT_SECONDS = 120
SERVER_NAMES = ["DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default",
                "DNS:kubernetes.default.svc", "IP:127.0.0.1", "IP:10.96.0.1"]


class Cluster(NodesMixin, EtcdMixin, AuditMixin):
    """See the module's comment. Not started by the constructor.

    name       folder under the cache; none: a temporary folder that goes away with the cluster
    nodes      simulated nodes node-0, node-1, ... made at the start
    fsync      etcd writes through to the disk
    pods_apart pods have an etcd of their own, so that their versions have nothing to do with others'
    owned      all processes end with this process (default: when there is no name)
    kwok, controller_manager, scheduler       False: that part is not started
    audit      False: no audit log; a path: that of another policy
    nodes_die  False: no kill_node(), and without its policy the API server has less to do for each pod
    apiserver_flags, controller_manager_flags, scheduler_flags    extra command line arguments
    """

    def __init__(self, name=None, nodes=1, k8s=DEFAULT_K8S_VERSION, fsync=False, owned=None,
                 kwok=True, controller_manager=True, scheduler=True, audit=True, nodes_die=True,
                 pods_apart=False, apiserver_flags=(), controller_manager_flags=(), scheduler_flags=(), quiet=False):
        self.name = name
        self.owned = owned if owned is not None else name is None
        self.node_count = nodes if kwok else 0
        self.options = {
            "k8s": k8s, "fsync": fsync, "kwok": kwok, "controller_manager": controller_manager,
            "scheduler": scheduler, "audit": audit if isinstance(audit, bool) else str(audit),
            "nodes_die": nodes_die, "pods_apart": pods_apart, "apiserver_flags": list(apiserver_flags),
            "controller_manager_flags": list(controller_manager_flags),
            "scheduler_flags": list(scheduler_flags)}
        self.folder = clusters_root() / name if name else None
        self.ports = {}
        self.tools = {}
        self._say = (lambda line: None) if quiet else say
        self._supervisor = None
        self._clients = {}
        self._clients_lock = threading.Lock()

    # -- life ---------------------------------------------------------------------------------

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Everything up and ready: API server, default service account, nodes. Returns self."""
        self.tools = ensure_tools(self.options["k8s"], self._say)
        if self.name:
            with FolderLock(clusters_root() / f".{self.name}.lock"):
                self._start()
        else:
            clusters_root().mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f".test-{os.getpid()}-",
                                                dir=clusters_root()))
            self._start()
        return self

    @classmethod
    def attach(cls, name):
        """A cluster that another process started under this name."""
        cluster = cls(name=name, owned=False)
        try:
            stored = json.loads((cluster.folder / "cluster.json").read_text())
        except FileNotFoundError as error:
            raise ClusterError(f"there is no cluster named {name}; "
                               "`hack/cluster up` starts one") from error
        cluster.options = stored["options"]
        cluster.ports = stored["ports"]
        cluster.tools = {tool: Path(path) for tool, path in stored["tools"].items()}
        cluster._supervisor = SupervisorClient(cluster.folder)
        return cluster

    def stop(self):
        """Ends every process, checks that none is left, and removes the folder."""
        with self._clients_lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
        if self.folder is None:
            return
        (self._supervisor or SupervisorClient(self.folder)).stop()
        remove_folder(self.folder)

    def is_up(self):
        """Whether its supervisor lives."""
        return self._supervisor is not None and self._supervisor.alive()

    def _start(self):
        if SupervisorClient(self.folder).alive():
            raise ClusterError(f"the cluster {self.name} is up already")
        if self.name:
            SupervisorClient(self.folder).stop()  # what a crash may have left
            remove_folder(self.folder)
        for sub in ("logs", "kubeconfigs"):
            (self.folder / sub).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._supervisor = SupervisorClient(self.folder)
        try:
            self._supervisor.start(self.owned, remove_folder=self.name is None)
            self._bring_up()
        except BaseException:
            self._supervisor.stop()
            if not self.name:  # a named one's logs stay for who looks into it
                remove_folder(self.folder)
            raise

    def _bring_up(self):
        ports = self._supervisor.ask("ports", count=len(components.PORTS))["ports"]
        self.ports = dict(zip(components.PORTS, ports))
        self._authority().create()
        self._authority().server("kube-apiserver", SERVER_NAMES)
        for component, (user, groups) in components.USERS.items():
            write_kubeconfig(self.folder / "kubeconfigs" / component, self.url, self._authority(),
                             user, groups)
        write_kubeconfig(self.kubeconfig, self.url, self._authority(), *ADMIN)
        self.start_etcd()
        self.start_apiserver()
        if self.options["controller_manager"]:
            self._launch("kube-controller-manager")
        if self.options["scheduler"]:
            self._launch("kube-scheduler")
        if self.options["kwok"]:
            if self.options["nodes_die"]:
                self._install_dead_nodes_policy()
            self._launch("kwok")
        names = [f"node-{number}" for number in range(self.node_count)]
        for node in names:
            self.add_node(node, wait=False)
        for part in ("kube-controller-manager", "kube-scheduler"):
            if self.options[part.removeprefix("kube-").replace("-", "_")]:
                self._wait_healthy(part)
        if self.options["controller_manager"]:
            self._wait_default_service_account()
        for node in names:
            self.wait_node_ready(node, READY_LIMIT_SECONDS)
        (self.folder / "cluster.json").write_text(json.dumps(
            {"options": self.options, "ports": self.ports,
             "tools": {tool: str(path) for tool, path in self.tools.items()}}))

    # -- the parts ----------------------------------------------------------------------------

    def start_etcd(self):
        """Starts etcd (after kill_etcd: on the same data) and waits until it serves."""
        if self.options.get("pods_apart") and not self._runs("etcd-pods"):
            self._launch("etcd-pods")
        self._launch("etcd")
        self._wait_part("etcd", lambda: self.etcd("/v3/maintenance/status", {}) is not None)

    def start_apiserver(self, wait=True):
        """Starts the API server on the same port and waits until it is ready."""
        self.end_cut_audit_line()
        self._launch("kube-apiserver")
        if wait:
            self.wait_apiserver_ready()

    def wait_apiserver_ready(self):
        """Until /readyz says so, informers, roles and post-start hooks included."""
        self._wait_part("kube-apiserver", lambda: self.api("GET", "/readyz", timeout=5)[0] == 200)

    def start_controller_manager(self):
        """Starts it again and waits until it is healthy."""
        self._launch("kube-controller-manager")
        self._wait_healthy("kube-controller-manager")

    def start_scheduler(self):
        """Starts it again and waits until it is healthy."""
        self._launch("kube-scheduler")
        self._wait_healthy("kube-scheduler")

    def start_kwok(self):
        """Starts kwok again; returns when it holds its nodes' Leases.

        kwok 0.7.0 may crash where it finds pods at its start ("concurrent map writes" in its table of
        CEL types, which its workers fill side by side). It is then started once more, three times at most.
        """
        for tries_left in (2, 1, 0):
            self._release_node_leases()
            self._launch("kwok")
            try:
                return self._introduce_nodes(alive=lambda: self._runs("kwok"))
            except ClusterError:
                if self._runs("kwok") or not tries_left:
                    raise

    def kill(self, part):
        """SIGKILL; returns when the process is gone and its port free."""
        self.signal(part, signal.SIGKILL)

    def kill_etcd(self):
        """SIGKILL of etcd."""
        self.kill("etcd")

    def kill_apiserver(self):
        """SIGKILL of the API server: no watch is closed properly, no request answered."""
        self.kill("kube-apiserver")

    def kill_controller_manager(self):
        """SIGKILL of kube-controller-manager."""
        self.kill("kube-controller-manager")

    def kill_scheduler(self):
        """SIGKILL of kube-scheduler."""
        self.kill("kube-scheduler")

    def kill_kwok(self):
        """SIGKILL of kwok: all simulated nodes die."""
        self.kill("kwok")

    def pause(self, part):
        """SIGSTOP: connections stay open, nothing answers."""
        self.signal(part, signal.SIGSTOP)

    def resume(self, part):
        """SIGCONT."""
        self.signal(part, signal.SIGCONT)

    def start_process(self, name, argv, env=None):
        """Runs a program under the supervisor, an operator say, so that it ends with the cluster.

        Output goes to log_path(name). kill, pause, resume and signal know it by its name, which
        may be used again once it has ended. Returns the pid.
        """
        environment = dict(self._supervisor.environment(), **(env or {}))
        return self._supervisor.ask("start", name=name, argv=[str(part) for part in argv],
                                    env=environment, log=str(self.log_path(name)))["pid"]

    def reserve_ports(self, count):
        """Free ports for what start_process starts; nobody else gets them while the cluster lives."""
        return self._supervisor.ask("ports", count=count)["ports"]

    def signal(self, name, number):
        """Any signal, to a part or to what start_process started."""
        self._supervisor.ask("signal", name=name, signal=int(number))

    def wait_ended(self, name, limit=60):
        """Waits until a process has ended and returns its return code (-9: by SIGKILL)."""
        wait_for(f"{name} to end", lambda: not self._runs(name), limit, self.log_path(name))
        return self.processes()[name]["returncode"]

    def processes(self):
        """What runs: {name: {pid, running, returncode, paused, started}}."""
        return self._supervisor.ask("status")["processes"]

    def pids(self):
        """Every living process of the cluster, the supervisor too."""
        return processes_of(self.folder)

    def log_path(self, part):
        """The log file of a part."""
        return self.folder / "logs" / f"{part}.log"

    def log_tail(self, part, lines=25):
        """The end of a part's log, for failure messages."""
        return log_tail(self.log_path(part), lines)

    # -- clients ------------------------------------------------------------------------------

    @property
    def url(self):
        """Of the API server."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def kubeconfig(self):
        """A cluster admin's kubeconfig file."""
        return self.folder / "kubeconfig"

    def kubeconfig_for(self, user, groups=(), path=None):
        """Writes a kubeconfig for another user (client certificate) and returns its path."""
        path = Path(path) if path else self.folder / "kubeconfigs" / f"user-{user}"
        return write_kubeconfig(path, self.url, self._authority(), user, groups)

    def kubectl(self, *args, input=None, check=True, timeout=120, kubeconfig=None):
        """Runs kubectl as admin. With check a CompletedProcess of a success, else of any end."""
        result = subprocess.run([str(self.tools["kubectl"]), *args], input=input, text=True,
                                capture_output=True, timeout=timeout, check=False,
                                env=dict(os.environ, KUBECONFIG=str(kubeconfig or self.kubeconfig),
                                         HOME=str(self.folder)))
        if check and result.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)}: exit {result.returncode}\n"
                               f"{result.stderr.strip()}")
        return result

    def api(self, method, path, body=None, content_type="application/json", user=None, groups=(),
            timeout=30):
        """(status, parsed JSON) of a raw call, by default as admin; see ApiClient.request."""
        return self.client(user, groups).request(method, path, body, content_type, timeout)

    def watch(self, path, resource_version="", timeout=60, user=None, groups=(), **params):
        """Yields watch events; see ApiClient.watch."""
        return self.client(user, groups).watch(path, resource_version, timeout, **params)

    def client(self, user=None, groups=()):
        """The ApiClient of a user (client certificate), made at first use."""
        who = (user, tuple(groups)) if user else ADMIN
        with self._clients_lock:
            if who not in self._clients:
                cert, key = self._authority().client(*who)
                self._clients[who] = ApiClient("127.0.0.1", self.ports["kube-apiserver"],
                                               self._authority().cert, cert, key)
            return self._clients[who]

    # -- inside -------------------------------------------------------------------------------

    def _authority(self):
        return Authority(self.folder / "pki")

    def _paths(self):
        return {"pki": self.folder / "pki", "etcd-data": self.folder / "etcd",
                "etcd-pods-data": self.folder / "etcd-pods",
                "audit-log": self.audit_log, "kubeconfigs": self.folder / "kubeconfigs"}

    def _launch(self, part):
        arguments = components.ARGUMENTS[part](self._paths(), self.ports, self.options)
        program = components.PROGRAMS.get(part, part)
        # kwok 0.7.0 fills its table of CEL types from many threads without a lock. On one thread its crash
        # ("concurrent map writes") is next to impossible: Go does not preempt a write to a map.
        environment = dict(self._supervisor.environment(), **({"GOMAXPROCS": "1"} if part == "kwok" else {}))
        self._supervisor.ask("start", name=part, argv=[str(self.tools[program]), *arguments],
                             env=environment, log=str(self.log_path(part)))

    def _runs(self, part):
        return self.processes().get(part, {}).get("running", False)

    def _wait_part(self, part, ready):
        wait_for(f"{part} to be ready", ready, READY_LIMIT_SECONDS, self.log_path(part),
                 alive=lambda: self._runs(part))

    def _wait_healthy(self, part):
        client = ApiClient("127.0.0.1", self.ports[part], None, None, None)
        self._wait_part(part, lambda: client.request("GET", "/healthz", timeout=5)[0] == 200)
        client.close()

    def _wait_default_service_account(self):
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_for("the service account default/default", lambda: self.api("GET", path)[0] == 200,
                 READY_LIMIT_SECONDS, self.log_path("kube-controller-manager"),
                 alive=lambda: self._runs("kube-controller-manager"))


def clusters_root():
    """The folder of all clusters' folders."""
    return cache_root() / "clusters"


def cluster_names():
    """The named clusters that have a folder, up or not (those of tests have no name)."""
    root = clusters_root()
    return sorted(p.name for p in root.glob("[!.]*") if p.is_dir()) if root.is_dir() else []
