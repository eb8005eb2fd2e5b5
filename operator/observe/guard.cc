#include "operator/observe/guard.h"

#include <algorithm>

#include "operator/codecs/guard_policies.h"

namespace holdfast::observe {
namespace {

constexpr const char* kGroupPath = "/apis/admissionregistration.k8s.io/v1";

}  // namespace

void Guard::start() {
  stopped_ = false;
  good_at_ = deps_.loop.now();
  spawn(look());
}

void Guard::stop() {
  stopped_ = true;
  deps_.loop.cancel(timer_);
}

reconciler::GuardView Guard::view() const {
  if (!required_) return {};
  if (fault_.what.empty()) return {!known_, "", ""};
  if (fault_looks_ < kToldLooks) return {true, "", ""};
  return {true, fault_.what, fault_.remedy};
}

Task<void> Guard::look() {
  const SteadyTime began = deps_.loop.now();
  Fault fault;
  auto task = read(fault);
  const Seen seen = co_await task;
  if (stopped_) co_return;
  const reconciler::GuardView before = view();
  take(seen, std::move(fault), began);
  if (required_ && !fault_.what.empty()) deps_.on_fault(fault_.what);
  const reconciler::GuardView after = view();
  const bool is_news = before.holds != after.holds || before.fault != after.fault;
  if (is_news) deps_.on_news();
  const bool is_sure = known_ && fault_.what.empty() && seen == Seen::kGood;
  const Duration left = began + (is_sure ? kLook : kShortLook) - deps_.loop.now();
  timer_ = deps_.loop.call_after(std::max<Duration>(left, std::chrono::milliseconds(100)),
                                 [this] { spawn(look()); });
}

// An answer that says nothing about a policy leaves what was known.
Task<Guard::Seen> Guard::read(Fault& fault) {
  kube::CallOptions options;
  options.timeout = kLimit;
  Seen seen = Seen::kGood;
  bool forbidden = false;
  for (const codecs::GuardObject& shipped : codecs::guard_objects()) {
    auto get = deps_.client.get(kube::object_path(kGroupPath, shipped.resource, "", shipped.name),
                                options);
    const Result<JsonDocument> answer = co_await get;
    if (stopped_) co_return Seen::kNothing;
    if (!answer && answer.error().code == ErrorCode::kForbidden) {
      forbidden = true;
      seen = Seen::kNothing;
      fault = {std::string("the operator may not read ") + shipped.resource + " " + shipped.name,
               "an administrator has given the operator this version's ClusterRole"};
    } else if (!answer && answer.error().code != ErrorCode::kNotFound) {
      deps_.log.debug("cannot read the guard", {{"error", answer.error().message}});
      seen = Seen::kNothing;
    } else {
      const JsonView object = answer ? JsonView(*answer) : JsonView();
      const std::string found = codecs::guard_fault(shipped, object, deps_.version);
      if (found.empty()) continue;
      forbidden_looks_ = 0;
      fault = {
          "the API server lacks the guard: " + found,
          "an administrator has installed the policies holdfast-guard-* of this version again"};
      co_return Seen::kFault;
    }
  }
  forbidden_looks_ = forbidden ? forbidden_looks_ + 1 : 0;
  co_return forbidden_looks_ >= kForbiddenLooks ? Seen::kFault : seen;
}

void Guard::take(Seen seen, Fault fault, SteadyTime began) {
  if (seen == Seen::kGood) good_at_ = began;
  const bool is_stale = fault_.what.empty() && deps_.loop.now() - good_at_ > kStale;
  if (seen == Seen::kNothing && is_stale) {
    fault = {"the policies of the guard could not be read for two minutes",
             "the API server answers about them again"};
    seen = Seen::kFault;
  }
  if (seen != Seen::kNothing) good_looks_ = seen == Seen::kGood ? good_looks_ + 1 : 0;
  if (seen != Seen::kGood && (seen == Seen::kFault || !fault_.what.empty())) ++fault_looks_;
  if (seen == Seen::kNothing) return;
  // Each API server holds writers to a policy some time after it has it.
  const bool is_back_too_soon = known_ && !fault_.what.empty() && good_looks_ == 1;
  if (is_back_too_soon) return;
  if (seen == Seen::kGood) fault_looks_ = 0;
  know(seen == Seen::kGood ? Fault{} : std::move(fault));
}

void Guard::know(Fault fault) {
  const bool is_news = !known_ || fault.what != fault_.what;
  known_ = true;
  fault_ = std::move(fault);
  if (!is_news) return;
  if (fault_.what.empty()) {
    deps_.log.info("the guard is in the API server");
  } else {
    deps_.log.warn(fault_.what, {{"meaning", required_ ? "no new attempt starts"
                                                       : "a wrong write of a job is not refused"}});
  }
}

}  // namespace holdfast::observe
