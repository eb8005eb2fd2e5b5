#include "reconciler/job/pods_left.h"

#include <algorithm>
#include <functional>

#include "reconciler/job/conditions.h"
#include "reconciler/job/edges.h"
#include "reconciler/job/waiting.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/liveness.h"

namespace holdfast::reconciler {
namespace {

// How soon a request to delete a pod that the same decision sends has its answer.
constexpr seconds kAnswerLook{1};

// For a pod that is not deleted yet. One that a rule of the cluster protects is given up after the
// window. None: it is not given up, because its deletion was not refused.
std::optional<Duration> undeleted_left(const Context& context, const DeletionTrouble* trouble) {
  if (!trouble || !trouble->refused) return std::nullopt;
  return context.spec.lost_after - context.view.observed.cancelling_for;
}

bool is_longer(const std::optional<Duration>& a, const std::optional<Duration>& b) {
  return b && (!a || *a > *b);
}

// The job is stalled once its pod should have ended, and the request to delete it still fails.
void report_failing_deletion(const Context& context, const PodsLeft& left, Status& status,
                             Plan& plan) {
  const auto& reported = context.job.status.waiting;
  const bool is_reported = reported && reported->reason == Reason::kPodDeletionFails;
  if (!left.trouble) {
    if (is_reported) status = context.job.status;  // a new process has not asked yet
    return;
  }
  const bool counts = reported && reported->reason != Reason::kPodCreationUnanswered;
  const Time since = counts ? reported->since.value_or(context.now) : context.now;
  const Time stalled_at = since + left.slowest->grace + context.spec.lost_after;
  if (!is_reported && context.now < stalled_at) return plan.wake_at(stalled_at);
  status.waiting = Waiting{
      Reason::kPodDeletionFails,
      "pod " + left.slowest->name +
          " has to be stopped, and the request to delete it fails: " + left.trouble->message,
      "the operator tries again every 30 s; correct what fails the request: repair or remove the "
      "webhook that the message names (validating or mutating)",
      std::nullopt};
  set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                context.now);
}

// The attempt was given up: its pod is not waited for.
using IsGivenUp = std::function<bool(const PodView&, std::int64_t attempt)>;

std::optional<PodsLeft> pods_left_but(const Context& context, Plan& plan,
                                      const IsGivenUp& is_given_up) {
  const auto& deletions = context.view.observed.deletions;
  std::optional<PodsLeft> left;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod) || !pod_lives(context, pod)) continue;
    // A later attempt's: nothing stops it before the end, see tidy_pods().
    const Job& job = context.job;
    const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod.name);
    if (!pod.slot && (attempt > job.status.attempt || is_given_up(pod, attempt))) continue;
    const auto found = deletions.find(pod.name);
    PodsLeft one{&pod, Duration(context.spec.lost_after)};
    // A worker answers, or is cut off. Nobody gives up its attempt before.
    if (!pod.slot && found != deletions.end()) one.trouble = &found->second;
    if (!pod.slot && pod.deletion) one.time = overstay_left(context, pod);
    if (!pod.slot && !pod.deletion) one.time = undeleted_left(context, one.trouble);
    if (!pod.slot && !pod.deletion && !one.trouble) plan.wake_in(kAnswerLook);
    if (!left || is_longer(one.time, left->time)) left = one;
    const NodeObservation* const node = node_of(context, pod);
    if (node && node->missing_for) plan.wake_in(context.spec.lost_after - *node->missing_for);
  }
  if (left && left->time && !left->given_up()) plan.wake_in(*left->time);
  return left;
}

// A rule of the cluster forbids its deletion, and no window runs: the job is suspended, and its end
// is not on record.
bool is_protected(const Context& context, const PodView& pod) {
  const auto found = context.view.observed.deletions.find(pod.name);
  return context.job.status.phase == Phase::kSuspended && !pod.deletion &&
         found != context.view.observed.deletions.end() && found->second.refused;
}

}  // namespace

std::optional<PodsLeft> pods_left(const Context& context, Plan& plan) {
  return pods_left_but(context, plan, [](const PodView&, std::int64_t) { return false; });
}

std::optional<PodsLeft> pods_to_await(const Context& context, Plan& plan,
                                      std::unordered_set<std::int64_t> lost) {
  for (const HistoryEntry& entry : context.job.status.history) {
    if (entry.outcome == Outcome::kLost) lost.insert(entry.attempt);
  }
  // History has ten attempts. For an older one its node decides. Not so for one that this decision
  // stops, or has just stopped: its worker may live though the node's kubelet is silent.
  const bool is_first = !recorded_end(context.job.status);
  return pods_left_but(context, plan, [&](const PodView& pod, std::int64_t attempt) {
    const NodeObservation* const node = node_of(context, pod);
    const Run* const run = context.job.status.run_of_pod(pod.name);
    const bool is_silent = is_first && !(run && run->open()) && node && node->silent_for &&
                           *node->silent_for >= silent_node_window(context, *node);
    return lost.count(attempt) > 0 || (pod.deletion && is_silent) || is_protected(context, pod);
  });
}

bool wait_for_pods(const Context& context, const std::optional<PodsLeft>& left, Waiting words,
                   Plan& plan) {
  const OpenCreation* const creation = last_creation(context.view);
  const bool pods_run = left && !left->given_up();
  if (!pods_run && (!creation || creation->left <= Duration::zero())) return false;
  Status status = context.job.status;
  // Until a pod is given up, or nobody knows when.
  if (pods_run && left->time && !left->slowest->slot) words.deadline = context.now + *left->time;
  if (!pods_run) {
    plan.wake_in(creation->left);
    words = creation_waiting(context, *creation);
  }
  status.waiting = std::move(words);
  clear_condition(status, "Stalled", to_string(Reason::kPodTerminating), context.now);
  if (pods_run && !left->time) report_failing_deletion(context, *left, status, plan);
  plan.inform(std::move(status));
  return true;
}

std::vector<std::int64_t> creations_to_look_at(const JobView& view) {
  std::vector<std::int64_t> attempts;
  for (const OpenCreation& one : view.observed.creations) {
    if (one.asked) attempts.push_back(one.attempt);
  }
  return attempts;
}

}  // namespace holdfast::reconciler
