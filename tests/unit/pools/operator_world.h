// One operator process over a simulated API server, in virtual time. The test is the kubelet, the
// agents and the users.
//
//   OperatorWorld world;
//   world.create(kPools, pool("small"));
//   world.start();
//   world.run(seconds(1));
//   const Json pod = world.all("pods").at(0);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/worker_protocol.h"
#include "tests/simulation/api_server.h"
#include "tests/support/manual_loop.h"

namespace holdfast::pools::testing {

inline constexpr const char* kPools = "/apis/holdfast.dev/v1alpha1/namespaces/default/workerpools";
inline constexpr const char* kJobs = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs";
inline constexpr const char* kBatchJobs = "/apis/batch/v1/namespaces/default/jobs";
inline constexpr const char* kPods = "/api/v1/namespaces/default/pods";
inline constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

// `more`: further fields of the spec, or others in place of the template.
Json durable_job(const std::string& name, const Json& more = Json::object());
std::string path_of(const Json& pod);

class OperatorWorld {
 public:
  OperatorWorld();
  ~OperatorWorld();

  // Another process: it knows nothing of the last one, and waits until its Lease has run out.
  void start();
  // It is killed.
  void stop();
  // Time passes, and everything happens that is due. The watches show all.
  void run(Duration time);
  // False: it did not happen in this time.
  bool run_until(const std::function<bool()>& done, Duration limit);

  // Requests of the test. They must succeed.
  Json create(const std::string& collection, const Json& object);
  Json patch(const std::string& path, const Json& change);
  void remove(const std::string& path, const Json& options = nullptr);
  Json put(const std::string& path, const Json& object);
  void collect_garbage();

  // Before start(): it runs batch/v1 Jobs, too; and how many shards there are.
  bool batch_jobs = false;
  std::string batch_selector = {};  // of their namespaces; empty: all
  // Before start(): it works on these alone.
  std::vector<std::string> namespaces;
  int shards = 1;
  // The operator's Events, in order: "Job DurableJobCreated".
  std::vector<std::string> events;

  // All that is stored in the namespace "default".
  std::vector<Json> all(const std::string& resource) const;
  // Null: it does not exist.
  Json find(const std::string& resource, const std::string& name) const;

  // How many jobs of this phase the operator counts (the metric holdfast_jobs).
  std::size_t counted(const std::string& namespace_, const std::string& phase) const;

  // The worker's agent renews its Lease and says this. Its work Lease is echoed.
  void renew(const std::string& pod_uid, WorkerReport report);
  // The entries and marks of its work Lease.
  Work work(const std::string& pod_uid) const;

  // Sees each request of the operator before the server does, and may answer it instead.
  std::function<std::optional<simulation::ApiAnswer>(const simulation::ApiRequest&)> before;
  // The watches with this in their targets stay open, and lose what they should show from now on.
  std::string stuck_watch;
  // The operator's writes of these pods and Leases, in order: "POST pods/x".
  std::vector<std::string> writes;

 private:
  class Transport;
  struct Process;

  bool is_stuck(const std::string& target) const;
  simulation::ApiAnswer ask(const simulation::ApiRequest& request);
  Json call(const std::string& method, const std::string& target, const Json& body,
            const std::string& content_type = "application/json");
  Time wall_clock() const;

  Duration earlier_{0};  // the lives of earlier processes
  int lives_ = 0;
  std::unique_ptr<test::ManualLoop> loop_;
  std::unique_ptr<simulation::ApiServer> server_;
  std::unique_ptr<Process> process_;
};

}  // namespace holdfast::pools::testing
