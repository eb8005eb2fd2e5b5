#include "operator/rescue/rescuer.h"

namespace holdfast::rescue {
namespace {

// A healthy API server answers within milliseconds. A later answer is asked for again.
constexpr std::chrono::seconds kLookLimit{5};
constexpr std::chrono::seconds kFreeLimit{5};

std::string path_of(const CachedRescuePod& pod, const std::string& subresource = "") {
  return kube::object_path("/api/v1", "pods", pod.namespace_, pod.name, subresource);
}

Duration window_of(const CachedRescuePod& pod) {
  return pod.pod.window.value_or(reconciler::kRescueWindow);
}

// Longer than a read may take.
constexpr std::chrono::seconds kSeenKept{10};

// A patch with a UID met another pod of the same name: a 422 that names metadata.uid.
bool met_another_pod(const Error& error) {
  return error.http_status == 422 && error.cause_fields == std::vector<std::string>{"metadata.uid"};
}

}  // namespace

Task<Result<>> Rescuer::read(std::string name, SteadyTime by) {
  const SteadyTime asked = loop_.now();
  auto get_node =
      client_.get(kube::object_path("/api/v1", "nodes", "", name), kube::live_look(by, asked));
  const Result<JsonDocument> node = co_await get_node;
  if (!node) co_return node.error();
  std::erase_if(seen_, [&](const auto& one) { return loop_.now() - one.second.asked > kSeenKept; });
  seen_[name] = {is_out_of_service(*node), !takes_no_pods(*node), asked};
  auto get_lease = nodes_.of_leases().confirm(name, by);
  const Result<> lease = co_await get_lease;
  if (!lease) co_return lease.error();
  co_return Unit{};
}

Task<Result<Rescuer::Look>> Rescuer::look(RescuePodPtr pod) {
  Look look;
  look.asked = nodes_.look_times(pod->namespace_);
  auto answered = reads_.ask(pod->pod.node, loop_.now() + kLookLimit);
  const Result<> read = co_await answered;
  if (!read) co_return read.error();
  const auto seen = seen_.find(pod->pod.node);
  if (seen == seen_.end()) co_return make_error(ErrorCode::kTransient, "the look took too long");
  look.out_of_service = seen->second.out_of_service;
  look.unmarked = seen->second.unmarked;
  co_return look;
}

reconciler::RescueView Rescuer::view(const CachedRescuePod& pod,
                                     const std::set<std::string>& owners, const Look* look) {
  reconciler::RescueView view;
  view.pod = pod.pod;
  const Duration window = window_of(pod);
  const Time now = client_.server_clock().now(loop_.now());
  view.age = pod.created ? now - *pod.created : window;
  const auto lease =
      nodes_.of_leases().silence(pod.pod.node, window, look ? look->asked : observe::LookTimes{});
  view.node.silent_for = lease.silent_for;
  view.node.in_doubt = lease.in_doubt;
  view.node.looked = look != nullptr;
  view.node.out_of_service = look && look->out_of_service;
  // Each pod of the node need not look for itself.
  const auto seen = seen_.find(pod.pod.node);
  const bool is_known =
      seen != seen_.end() && loop_.now() - seen->second.asked < reconciler::kMarkLook;
  view.node.unmarked = look ? look->unmarked : is_known && seen->second.unmarked;
  view.owner_may_be_freed = reconciler::may_be_freed(pod.pod.owner, owners);
  return view;
}

Duration Rescuer::silence_of(const CachedRescuePod& pod) {
  return nodes_.of_leases()
      .silence(pod.pod.node, window_of(pod))
      .silent_for.value_or(Duration::zero());
}

Task<Result<>> Rescuer::free(RescuePodPtr pod, Duration silent, controller::Gate::Claim claim) {
  kube::CallOptions options = kube::live_look(loop_.now() + kFreeLimit, loop_.now());
  options.content_type = "application/strategic-merge-patch+json";
  options.answer_with_metadata = true;
  options.once = true;  // the node may renew while it would wait
  const Time now = client_.server_clock().now(loop_.now());
  auto patch =
      writer_.patch(claim, path_of(*pod, "status"), freeing_patch(*pod, silent, now), options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer) co_return Unit{};
  if (met_another_pod(answer.error())) {
    co_return make_error(ErrorCode::kConflict, answer.error().message);
  }
  co_return answer.error();
}

Task<Result<>> Rescuer::remove(RescuePodPtr pod, controller::Gate::Claim claim) {
  auto del = writer_.del(claim, path_of(*pod),
                         controller::preconditions(pod->uid, std::nullopt, /*grace=*/0));
  const Result<JsonDocument> answer = co_await del;
  if (answer) co_return Unit{};
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return Unit{};
  co_return answer.error();
}

}  // namespace holdfast::rescue
