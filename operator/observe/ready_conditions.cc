#include "operator/observe/ready_conditions.h"

#include "client/kube/object.h"
#include "core/pause.h"
#include "reconciler/names.h"

namespace holdfast::observe {
namespace {

// The most reads of nodes' conditions in progress at a time.
constexpr int kMostReads = 8;

}  // namespace

void ReadyConditions::add(const std::string& node) {
  if (leaseless_.size() < kMostNodes && leaseless_.insert(node).second) changed(node);
}

void ReadyConditions::changed(const std::string& node) {
  if (leaseless_.count(node) == 0) return;
  unread_.insert(node);
  read();
}

void ReadyConditions::has_lease(const std::string& node) {
  if (leaseless_.erase(node) != 0) unready_.gone(node);
}

void ReadyConditions::gone(const std::string& node) {
  unready_.gone(node);
  leaseless_.erase(node);
}

void ReadyConditions::read() {
  if (asked_to_wait(not_before_, deps_.loop.now())) return;
  while (reading_ < kMostReads && !unread_.empty()) {
    ++reading_;
    spawn(read_one(unread_.extract(unread_.begin()).value()));
  }
}

Task<void> ReadyConditions::read_one(std::string node) {
  auto get = deps_.client.get(kube::object_path("/api/v1", "nodes", "", node));
  const Result<JsonDocument> object = co_await get;
  --reading_;
  deps_.on_answer();
  if (!object) heed(object.error(), deps_.loop.now(), not_before_);
  if (object) {
    note(node, *object);
    read();
  } else if (object.error().code != ErrorCode::kNotFound && leaseless_.count(node) != 0) {
    unread_.insert(node);
  }
}

void ReadyConditions::note(const std::string& node, const JsonView& object) {
  if (leaseless_.count(node) == 0) return;
  const bool before = unready_.knows(node);
  bool unknown = false;
  for (const JsonView condition : at(at(object, "status"), "conditions")) {
    if (string_at(condition, "type") != "Ready") continue;
    unknown = string_at(condition, "status") == "Unknown";
    const std::string since = string_at(condition, "lastTransitionTime");
    if (unknown) unready_.seen(node, reconciler::hash64(since), deps_.time().now);
  }
  if (!unknown) unready_.gone(node);
  if (before != unknown) deps_.on_change(node);
}

}  // namespace holdfast::observe
