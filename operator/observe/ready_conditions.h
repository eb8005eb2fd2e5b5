// The nodes that never had a Lease (virtual kubelets, simulators). They are judged by their Ready
// condition, which the node controller sets to Unknown. Watches bring only the metadata of nodes,
// so the condition is read live: once, and again after each change of the object. Loop only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_set>

#include "client/kube/client.h"
#include "core/json_view.h"
#include "core/loop.h"
#include "core/task.h"
#include "reconciler/staleness.h"

namespace holdfast::observe {

// Kubernetes supports 5,000 nodes. Nodes that were deleted count too.
inline constexpr std::size_t kMostNodes = 50'000;

class ReadyConditions {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    std::function<void()> on_answer;  // before an answer is looked at
    std::function<reconciler::LiveTime()> time;
    std::function<void(const std::string& node)> on_change;  // Unknown, or no longer
  };
  explicit ReadyConditions(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // The node has no Lease.
  void add(const std::string& node);
  // The node's object has changed.
  void changed(const std::string& node);
  // The node has a Lease now.
  void has_lease(const std::string& node);
  void gone(const std::string& node);

  // Reads the conditions that must be read, a few at a time. A failed read is repeated at the next
  // call, and not before the API server's Retry-After.
  void read();
  // The node's object, read live.
  void note(const std::string& node, const JsonView& object);

  // Nodes whose Ready is Unknown, and for how long.
  reconciler::RecordTracker& unready() { return unready_; }

 private:
  Task<void> read_one(std::string node);

  Dependencies deps_;
  reconciler::RecordTracker unready_;
  std::unordered_set<std::string> leaseless_;
  std::set<std::string> unread_;
  int reading_ = 0;
  SteadyTime not_before_{};
};

}  // namespace holdfast::observe
