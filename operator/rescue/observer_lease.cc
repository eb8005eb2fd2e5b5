#include "operator/rescue/observer_lease.h"

#include <utility>

#include "client/kube/lease_resource.h"
#include "core/json.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/rescue/journal_text.h"

namespace holdfast::rescue {
namespace {

using membership::kWindowsAnnotation;

}  // namespace

ObserverLease::ObserverLease(const Dependencies& dependencies, Config config, Handlers handlers)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      config_(std::move(config)),
      handlers_(std::move(handlers)) {}

std::string ObserverLease::path(const std::string& name) const {
  return name.empty()
             ? kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_)
             : kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_,
                                 name);
}

bool ObserverLease::acting() const {
  return !stopping_ && renewed_ && loop_.now() - *renewed_ < config_.timings.renew_deadline;
}

void ObserverLease::start() { spawn(round()); }

void ObserverLease::round_soon() {
  if (stopping_) return;
  timer_ = loop_.call_after(config_.timings.retry_period, [this] { spawn(round()); });
}

// A holder whose Lease has not changed for its duration, by our clock, is dead.
bool ObserverLease::may_take(const Seen& seen) {
  if (seen.holder.empty()) return true;
  if (seen.version != seen_version_) {
    seen_version_ = seen.version;
    seen_at_ = loop_.now();
  }
  return loop_.now() - seen_at_ > config_.timings.lease_duration;
}

// With nothing in it: the answer is no Lease.
ObserverLease::Seen ObserverLease::seen_in(const JsonDocument& lease) {
  Seen seen;
  kube::Object meta;
  if (!kube::decode_meta(lease, meta)) return seen;
  const JsonView spec = at(lease, "spec");
  seen.uid = meta.uid;
  seen.version = meta.version;
  seen.holder = string_at(spec, "holderIdentity");
  seen.transitions = int_at(spec, "leaseTransitions");
  seen.windows = string_at(at(at(lease, "metadata"), "annotations"), kWindowsAnnotation);
  return seen;
}

Task<void> ObserverLease::round() {
  kube::CallOptions options;
  options.timeout = config_.timings.renew_deadline / 2;
  auto get = client_.get(path(reconciler::kObserverLease), options);
  const Result<JsonDocument> answer = co_await get;
  if (stopping_) co_return;
  Seen seen;
  if (answer) {
    seen = seen_in(*answer);
    handlers_.answered();
    if (seen.holder != config_.self) handlers_.recorded(seen.windows);
  } else if (answer.error().code != ErrorCode::kNotFound) {
    log_.debug("the observer's Lease cannot be read", {{"error", answer.error().message}});
    round_soon();
    co_return;
  }
  if (seen.holder == config_.self || may_take(seen)) {
    auto task = write(seen, config_.self);
    co_await task;
  } else {
    renewed_.reset();
  }
  round_soon();
}

std::string ObserverLease::body(const Seen& seen, const std::string& holder) const {
  const Time now = client_.server_clock().now(loop_.now());
  Json meta = {{"name", reconciler::kObserverLease}, {"namespace", config_.namespace_}};
  if (!seen.uid.empty()) {
    meta["uid"] = seen.uid;
    meta["resourceVersion"] = std::to_string(seen.version);
  }
  const std::string windows = handlers_.record();
  if (!windows.empty()) meta["annotations"] = {{kWindowsAnnotation, windows}};
  const auto duration =
      std::chrono::duration_cast<std::chrono::seconds>(config_.timings.lease_duration);
  Json spec = {{"leaseDurationSeconds", duration.count()},
               {"renewTime", format_time_micros(now)},
               {"leaseTransitions", seen.transitions + (seen.holder == holder ? 0 : 1)}};
  if (!holder.empty()) spec["holderIdentity"] = holder;
  const Json body = {{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  return body.dump();
}

Task<void> ObserverLease::write(Seen seen, std::string holder) {
  kube::CallOptions options;
  options.timeout = config_.timings.renew_deadline / 2;
  options.answer_with_metadata = true;
  const SteadyTime sent = loop_.now();
  auto call = seen.uid.empty()
                  ? client_.post(path(""), body(seen, holder), options)
                  : client_.put(path(reconciler::kObserverLease), body(seen, holder), options);
  const Result<JsonDocument> answer = co_await call;
  if (!answer) {
    log_.debug("the observer's Lease cannot be written", {{"error", answer.error().message}});
    co_return;
  }
  if (!renewed_) log_.info("this replica observes");
  renewed_ = sent;
  handlers_.answered();
}

void ObserverLease::stop(std::function<void()> stopped) {
  const bool holds = acting();
  stopping_ = true;
  loop_.cancel(timer_);
  if (!holds) return loop_.post(std::move(stopped));
  spawn(free(std::move(stopped)));
}

Task<void> ObserverLease::free(std::function<void()> stopped) {
  auto get = client_.get(path(reconciler::kObserverLease));
  const Result<JsonDocument> answer = co_await get;
  const Seen seen = answer ? seen_in(*answer) : Seen();
  if (seen.holder == config_.self) {
    auto task = write(seen, "");
    co_await task;
  }
  stopped();
}

}  // namespace holdfast::rescue
