// What the verbs and the page ask the API server for. Each call returns when it is answered.
//
// ClusterApi (cluster_api.h) is the real one; tests have their own. The methods may block, and any
// thread may call them. Errors are those of kube::Client.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/object.h"
#include "core/json.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

// One kind of object, as its REST path names it.
struct Resource {
  const char* group_path;  // "/api/v1"
  const char* plural;
  const char* kind;      // for people: "DurableJob"
  const char* singular;  // in front of names: "durablejob.holdfast.dev"
};
inline constexpr Resource kJobs{"/apis/holdfast.dev/v1alpha1", "durablejobs", "DurableJob",
                                "durablejob.holdfast.dev"};
inline constexpr Resource kQueues{"/apis/holdfast.dev/v1alpha1", "jobqueues", "JobQueue",
                                  "jobqueue.holdfast.dev"};
inline constexpr Resource kPools{"/apis/holdfast.dev/v1alpha1", "workerpools", "WorkerPool",
                                 "workerpool.holdfast.dev"};
inline constexpr Resource kPods{"/api/v1", "pods", "Pod", "pod"};
inline constexpr Resource kEvents{"/api/v1", "events", "Event", "event"};
inline constexpr Resource kNodes{"/api/v1", "nodes", "Node", "node"};
inline constexpr Resource kLeases{"/apis/coordination.k8s.io/v1", "leases", "Lease",
                                  "lease.coordination.k8s.io"};

struct Selector {
  std::string labels;  // not encoded; empty: all
  std::string fields;
};

// A copy of the objects of one list, kept current by a watch, also across interruptions.
class Mirror {
 public:
  virtual ~Mirror() = default;
  // Waits for the first list, or for a change since the last call. False: nothing came in time.
  virtual bool wait(Duration at_most) = 0;
  // As they are now, in no particular order. Empty before the first list.
  virtual std::vector<std::shared_ptr<const Json>> objects() = 0;
  // Those that were deleted since the last call, as they were at last; at most the last 1,000. They
  // include all objects that objects() had and does not have now.
  virtual std::vector<std::shared_ptr<const Json>> deleted() = 0;
  // Why it is not current; empty: it is.
  virtual std::string trouble() = 0;
  // Asks the API server for the list once more, and returns the error that it gets, if any. Takes
  // at most that long.
  virtual std::optional<Error> look(Duration at_most) = 0;
};

// Objects of one list, each as its decoder makes it, kept current by a watch.
class Watch {
 public:
  virtual ~Watch() = default;  // no change is reported after it
  virtual bool synced() = 0;   // the first list has been reported
  // Why it is not current; empty: it is.
  virtual std::string trouble() = 0;
  // Asks the API server for the list once more, and returns the error that it gets, if any. Takes
  // at most that long.
  virtual std::optional<Error> look(Duration at_most) = 0;

  using Decode = std::function<kube::ObjectPtr(const JsonView&)>;
  // On a thread of its own, in order. Null before: it is new; null after: it is gone. Both null:
  // the first list has been reported.
  using OnChange = std::function<void(const kube::ObjectPtr& before, const kube::ObjectPtr& after)>;
};

class Api {
 public:
  virtual ~Api() = default;

  // The namespace of the kubeconfig's context. The error says why there is no cluster to talk to.
  virtual Result<std::string> context_namespace() = 0;
  // The API server's address, for people; empty: it is not known yet.
  virtual std::string server() = 0;

  virtual Result<Json> get(const Resource& resource, const std::string& namespace_,
                           const std::string& name) = 0;
  // All pages. An empty namespace means all.
  virtual Result<std::vector<Json>> list(const Resource& resource, const std::string& namespace_,
                                         const Selector& selector) = 0;
  // The first 500 of a list, as the decoder makes them. The error says what a list would.
  virtual Result<std::vector<kube::ObjectPtr>> first_page(const Resource& resource,
                                                          const std::string& namespace_,
                                                          Watch::Decode decode) = 0;
  virtual Result<Json> create(const Resource& resource, const std::string& namespace_,
                              const Json& object, bool dry_run) = 0;
  // A JSON merge patch.
  virtual Result<Json> patch(const Resource& resource, const std::string& namespace_,
                             const std::string& name, const Json& merge_patch) = 0;
  // Plain text, such as a pod's log. `path` is encoded.
  virtual Result<std::string> text(const std::string& path) = 0;

  // Without a request before it, nobody hears of missing rights: list or get first.
  virtual Result<std::unique_ptr<Mirror>> mirror(const Resource& resource,
                                                 const std::string& namespace_,
                                                 const Selector& selector) = 0;

  virtual Result<std::unique_ptr<Watch>> watch(const Resource& resource,
                                               const std::string& namespace_, Watch::Decode decode,
                                               Watch::OnChange on_change) = 0;

  // The API server's time, which job statuses and Events carry. Known after the first answer;
  // before it, this machine's time.
  virtual Time now() = 0;
};

}  // namespace holdfast::plugin
