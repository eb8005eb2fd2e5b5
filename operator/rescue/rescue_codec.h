// The pods of other controllers that users have put under Holdfast's care by a label. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/kube/object.h"
#include "reconciler/rescue/rescue.h"

namespace holdfast::rescue {

struct CachedRescuePod : kube::Object {
  std::optional<Time> created;
  bool is_deleted = false;  // it may still terminate
  bool succeeded = false;
  reconciler::RescuePod pod;
};
using RescuePodPtr = std::shared_ptr<const CachedRescuePod>;

// What the cache watches: pods with the label.
kube::Kind rescue_pod_kind();

// Null: not a pod.
RescuePodPtr decode_rescue_pod(const JsonView& json);

// The node has the taint that says that an administrator knows it to be out of service.
bool is_out_of_service(const JsonView& node);
// The scheduler puts no new pods on the node: it is cordoned, or has a taint of the node controller.
bool takes_no_pods(const JsonView& node);

// A merge patch of the status of exactly this pod, at exactly this version: it is freed. `silent`:
// for the message.
std::string freeing_patch(const CachedRescuePod& pod, Duration silent, Time now);

}  // namespace holdfast::rescue
