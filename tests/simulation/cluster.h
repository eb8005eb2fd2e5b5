// The operator's surroundings in a cluster: nodes, kubelets, the processes in pods, the scheduler,
// the collectors of pods whose node is lost. Jobs with a heartbeat have agents. All of these see
// the stored data a little late and act through the gateway, each as its own user.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/random.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

// Requests of a template to the schedulers, with a number of seconds behind them. A gate is removed
// that long after the creation of the first attempt's pod. A scheduler reports nothing before that
// time.
inline constexpr const char* kGatePrefix = "simulation/removed-after-";
inline constexpr const char* kSchedulerPrefix = "silent-for-";

// The annotation of a template that gives the behaviour of its worker, attempt by attempt.
inline constexpr const char* kPlanAnnotation = "simulation/plan";

class Cluster {
 public:
  struct Node {
    std::string name;
    bool exists = false;  // it has an object
    bool reaches = true;  // its kubelet reaches the API server
    bool powered = true;
    Duration renewed{0};     // the last renewal of its Lease
    Duration lost_since{0};  // since when it is powered off or cut off
    Duration marked_at{0};   // when the node controller last found it silent
    bool cordoned = false;   // it gets no new pods
    Duration skew{0};        // how far its kubelet's clock is ahead
    bool usable() const { return exists && reaches && powered; }
  };
  // The agents of warm workers: what runs in their pods.
  class Agents {
   public:
    virtual ~Agents() = default;
    virtual bool serves(const Json& pod) const = 0;
    virtual void begin(const Json& pod) = 0;
    virtual void sigterm(const std::string& pod_uid) = 0;
    // All processes of the container.
    virtual void kill(const std::string& pod_uid) = 0;
    // The same, by the kernel for its memory; and by the kubelet, because the pod's grace is over.
    virtual void out_of_memory(const std::string& pod_uid) = 0;
    virtual void grace_is_over(const std::string& pod_uid) = 0;
    virtual void vanished(const std::string& pod_uid) = 0;
  };
  Cluster(Scheduler& scheduler, Gateway& gateway, Strikes& strikes, std::uint64_t seed);

  // The node controller has found it silent, so it gets no new pods.
  bool is_marked(const Node& node) const;

  // Null: pods of warm workers are like others.
  void agents(Agents* agents) { agents_ = agents; }
  // By itself, or because it was killed.
  void container_ended(const std::string& pod_uid, int exit_code) {
    exit(pod_uid, exit_code, exit_code == 0 ? "Completed" : "Error");
  }
  // The kernel kills it, for its memory or not. False: it does not run.
  bool kill_container(const std::string& pod_uid, bool out_of_memory = true);
  // The same, and it begins again in its pod. Only those of warm workers.
  bool restart_container(const std::string& pod_uid);

  void start(int nodes);
  // Called for every write of a pod; either may be null.
  void pod_changed(const Json* before, const Json* after);
  // All data may have changed (a restore).
  void look_at_everything();

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node* node(const std::string& name) const;
  // What really happened to a kubelet's pod, by UID, in the API server's time.
  struct Truth {
    Time started{};        // its first container; epoch: not yet
    bool stopped = false;  // its process ended because the pod was deleted
    Duration skew{0};      // of the clock that its reported times come from
    // Of a job with a heartbeat, in the world's time: the renewals that the API server took. Since
    // when the worker makes no progress (none: it does).
    std::vector<Duration> renewals;
    std::optional<Duration> hangs_since;
    bool speaks = false;  // the agent renews when it can
  };
  std::optional<Truth> truth(const std::string& uid) const;

  void silence(int node, bool power_off);
  void bring_back(int node);
  void remove_node(int node);
  void cordon(int node) { nodes_[static_cast<std::size_t>(node)].cordoned = true; }
  void uncordon(int node) { nodes_[static_cast<std::size_t>(node)].cordoned = false; }
  void evict(const std::string& key, std::uint64_t seed);
  // The kubelet of a pod that runs says for two seconds that no container has started. False: no
  // pod runs.
  bool take_back_start(std::uint64_t seed);
  // Periods in which nothing is scheduled, no image can be pulled, or workers fail.
  void unschedulable(bool on) { unschedulable_ = on; }
  void image_errors(bool on) { image_errors_ = on; }
  void failing(int permille) { failing_permille_ = permille; }
  // The same for jobs with a heartbeat: so many workers begin to hang, or die with their agents and
  // nobody reports that. The second container of new pods has no image.
  void hanging(int permille) { hanging_permille_ = permille; }
  void falling_silent(int permille) { silent_permille_ = permille; }
  void next_image_errors(bool on) { next_image_errors_ = on; }
  // Decides what a worker does. If not set, that is drawn at random.
  struct Work {
    Duration lasts{0};
    int exit_code = 0;
    int exit_code_on_sigterm = 143;
    Duration sigterm_takes{0};
  };
  std::function<std::optional<Work>(const std::string& pod)> work_of;
  // Agents of these pods never renew. If not set, all agents do.
  std::function<bool(const std::string& pod)> is_mute;
  // The workers of two attempts of a job with a heartbeat run at once.
  std::function<void(const std::string& what)> on_overlap;
  // From now on workers end soon and succeed.
  void calm() { calm_ = true; }

 private:
  // One pod's process on its node, as its kubelet knows it.
  struct Process {
    std::string namespace_, name, uid, node;
    // kPrepared: the init containers have ended.
    enum class State { kStarting, kPrepared, kRunning, kExited, kLost } state = State::kStarting;
    std::uint64_t plan = 0;
    std::optional<Work> work;
    bool prepares = false;  // it has init containers
    bool terminating = false;
    int exit_code = 0;
    std::string reason;
    Time began{};    // its init containers, if it has any; in the API server's time, as the next
    Time started{};  // its main container
    Time finished{};
    bool stopped = false;  // because of its deletion
    Duration skew{0};
    bool reported = false;
    bool taken_back = false;          // its kubelet says that no container has started
    bool without_containers = false;  // or reports no container at all
    // Pods with an agent (agents.cc): the Lease that the agent renews.
    std::string lease;
    Duration lease_duration{0};
    std::optional<Duration> progress_deadline;
    std::vector<Duration> renewals;  // when each was acknowledged
    std::optional<Duration> hangs_since;
    bool silent = false;  // agent and child are dead, and the kubelet does not notice
    bool works = false;   // the child runs; true at once without an agent
    std::string message;  // the termination message
    bool serves = false;  // an agent of a warm worker runs there
    int restarts = 0;     // of its container
    Scheduler::EventId next = 0;
    Scheduler::EventId report = 0;
    std::string path() const;
  };

  void renew(int node);
  void register_node(int node);
  void bind(const std::string& key);
  void leave_what_is_avoided(const Json& pod, std::vector<const Node*>& fit);
  void remove_gates(const std::string& key, const std::string& uid);
  bool waits_for_scheduler(const Json& pod, Duration& left) const;
  void report_unschedulable(const Json& pod);
  void place(const Json& pod);
  void begin(const std::string& uid);
  void run(const std::string& uid);
  void work(const std::string& uid);
  void exit(const std::string& uid, int code, const std::string& reason);
  void forget(const std::string& uid);
  void ask_worker_to_end(const std::string& uid, Duration grace);
  bool is_to_go(const Process& process) const;
  void terminate(const std::string& uid, const Json& pod);
  void report_soon(const std::string& uid);
  void report(const std::string& uid);
  void remove_pod(const Process& process);
  void mark_silent_nodes();
  void collect_lost_pods();
  void fail_pod(const Json& pod, const std::string& by, const std::string& reason);
  Json status_of(const Process& process, const Json& pod) const;

  // agents.cc
  static void read_agent(const Json& pod, Process& process);
  void beat(const std::string& uid);
  enum class Beat { kRenewed, kNotMine, kNoAnswer };
  Beat renew_lease(const Process& process);
  void plan_trouble(const std::string& uid);
  void look_for_overlap(const Process& process) const;
  Node* find_node(const std::string& name);
  Duration some(Duration least, Duration most);
  std::optional<ApiAnswer> patch(const std::string& user, const std::string& target,
                                 const Json& body);

  Scheduler& scheduler_;
  Gateway& gateway_;
  Strikes& strikes_;
  Agents* agents_ = nullptr;
  const std::uint64_t seed_;
  SeededRandom random_;
  std::vector<Node> nodes_;
  std::map<std::string, Process> processes_;  // by pod UID
  std::set<std::string> binding_;             // pods by key
  bool unschedulable_ = false;
  bool image_errors_ = false;
  int failing_permille_ = 0;
  int hanging_permille_ = 0;
  int silent_permille_ = 0;
  bool next_image_errors_ = false;
  bool calm_ = false;
};

// "<namespace>/<name>" of an object.
std::string key_of(const Json& object);
std::string uid_of(const Json& object);
std::string pod_target(const std::string& namespace_, const std::string& name);

}  // namespace holdfast::simulation
