#include "operator/observe/guard.h"

#include <algorithm>

#include "operator/codecs/guard_policies.h"

namespace holdfast::observe {
namespace {

constexpr const char* kGroupPath = "/apis/admissionregistration.k8s.io/v1";

}  // namespace

void Guard::start() {
  stopped_ = false;
  spawn(look());
}

void Guard::stop() {
  stopped_ = true;
  deps_.loop.cancel(timer_);
}

std::string Guard::fault() const {
  const bool is_stale = known_ && fault_.empty() && deps_.loop.now() - good_at_ > kStale;
  return is_stale ? "its policies could not be read for two minutes" : fault_;
}

reconciler::GuardView Guard::view() const {
  if (!required_) return {};
  reconciler::GuardView view{!known_, fault()};
  view.holds = view.holds || !view.fault.empty();
  return view;
}

Task<void> Guard::look() {
  const SteadyTime began = deps_.loop.now();
  std::string fault;
  auto task = read(fault);
  const Seen seen = co_await task;
  if (stopped_) co_return;
  found(seen, fault, began);
  const bool is_sure = known_ && fault_.empty() && seen == Seen::kGood;
  const Duration left = began + (is_sure ? kLook : kShortLook) - deps_.loop.now();
  timer_ = deps_.loop.call_after(std::max<Duration>(left, std::chrono::milliseconds(100)),
                                 [this] { spawn(look()); });
}

// An answer that says nothing about a policy leaves what was known.
Task<Guard::Seen> Guard::read(std::string& fault) {
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
      fault = "the operator may not read " + std::string(shipped.resource) + " " + shipped.name;
    } else if (!answer && answer.error().code != ErrorCode::kNotFound) {
      deps_.log.debug("cannot read the guard", {{"error", answer.error().message}});
      seen = Seen::kNothing;
    } else {
      const JsonView object = answer ? JsonView(*answer) : JsonView();
      const std::string found = codecs::guard_fault(shipped, object, deps_.version);
      if (found.empty()) continue;
      forbidden_looks_ = 0;
      fault = found;
      co_return Seen::kFault;
    }
  }
  forbidden_looks_ = forbidden ? forbidden_looks_ + 1 : 0;
  co_return forbidden_looks_ >= kForbiddenLooks ? Seen::kFault : seen;
}

void Guard::found(Seen seen, const std::string& fault, SteadyTime began) {
  if (seen == Seen::kNothing) return;
  good_looks_ = seen == Seen::kGood ? good_looks_ + 1 : 0;
  // Each API server holds writers to a policy some time after it has it.
  const bool is_back_too_soon = known_ && !fault_.empty() && good_looks_ == 1;
  if (is_back_too_soon) return;
  const std::string next = seen == Seen::kGood ? "" : fault;
  const bool was_held = view().holds;
  const bool is_news = !known_ || next != fault_;
  known_ = true;
  fault_ = next;
  if (seen == Seen::kGood) good_at_ = began;
  if (is_news && fault_.empty()) {
    deps_.log.info("the guard is in the API server");
  } else if (is_news) {
    deps_.log.warn("the API server lacks the guard",
                   {{"why", fault_},
                    {"meaning", required_ ? "no new attempt starts"
                                          : "a wrong write of a job is not refused"}});
  }
  if (!fault_.empty() && deps_.on_fault) deps_.on_fault(fault_);
  if (was_held && !view().holds && deps_.on_return) deps_.on_return();
}

}  // namespace holdfast::observe
