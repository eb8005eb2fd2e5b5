// Pods that are being stopped: which, and until when.
#include <algorithm>

#include "plugin/explain/parts.h"
#include "plugin/terminal/moments.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;
using std::chrono::seconds;

bool is_alive(const Json& pod) {
  const std::string phase = string_at(at(pod, "status"), "phase");
  return pod.is_object() && phase != "Succeeded" && phase != "Failed";
}

// Nobody waits for the pod of a lost attempt.
bool is_given_up(const Json& pod, const JobText& job) {
  const std::string name = clean_at(at(pod, "metadata"), "name");
  return std::any_of(job.history.begin(), job.history.end(),
                     [&](const auto& end) { return end.pod == name && end.outcome == "Lost"; });
}

std::string place_text(const StoppingRun& run) {
  if (!run.worker.empty()) return "worker " + run.worker;
  return "pod " + run.pod + (run.node.empty() ? "" : " on " + run.node);
}

std::optional<Time> last_grace_end(const std::vector<StoppingRun>& runs) {
  std::optional<Time> last;
  for (const StoppingRun& run : runs) {
    if (run.grace_end && (!last || *run.grace_end > *last)) last = run.grace_end;
  }
  return last;
}

}  // namespace

std::vector<StoppingRun> stopping_runs(const Explaining& explaining) {
  std::vector<StoppingRun> stopping;
  if (!stops_pods(explaining.outlook) || explaining.job.has_ended()) return stopping;
  const auto& runs = explaining.job.runs;
  for (const RunText& run : runs) {
    if (run.next_attempt) continue;
    stopping.push_back({run.index, run.pod, run.node, run.worker, {}});
  }
  for (const Json& pod : explaining.facts.pods) {
    if (!is_alive(pod) || is_given_up(pod, explaining.job)) continue;
    const std::string name = clean_at(at(pod, "metadata"), "name");
    const auto same = [&](const auto& one) { return one.pod == name; };
    auto known = std::find_if(stopping.begin(), stopping.end(), same);
    if (known == stopping.end()) {
      const auto run = std::find_if(runs.begin(), runs.end(), same);
      const auto index = run == runs.end() ? std::nullopt : std::optional(run->index);
      known = stopping.insert(stopping.end(),
                              {index, name, clean_at(at(pod, "spec"), "nodeName"), "", {}});
    }
    known->grace_end = moment_at(at(pod, "metadata"), "deletionTimestamp");
  }
  std::stable_sort(stopping.begin(), stopping.end(),
                   [](const auto& a, const auto& b) { return a.index < b.index; });
  return stopping;
}

void add_stopping(const Explaining& explaining, Facts& facts) {
  constexpr std::size_t kNamed = 3;
  const std::vector<StoppingRun> runs = stopping_runs(explaining);
  if (runs.empty()) return;
  Text text;
  for (std::size_t i = 0; i < std::min(runs.size(), kNamed); ++i) {
    if (i > 0) text += "; ";
    if (explaining.job.many_runs() && runs[i].index) {
      text += "run " + std::to_string(*runs[i].index) + ": ";
    }
    text += place_text(runs[i]);
  }
  if (runs.size() > kNamed) {
    text += "; " + count_text(static_cast<std::int64_t>(runs.size() - kNamed)) + " more";
  }
  if (const auto end = last_grace_end(runs)) {
    text += *end > explaining.now ? ". Grace ends " : ". Grace ended ";
    text += Text::moment(*end);
  }
  add_fact("stopping", "Stopping", std::move(text), facts);
}

Text stopped_by(const Explaining& explaining, const WaitingText& waiting) {
  const AnyReason reason(waiting.reason);
  const bool of_pods = reason == Reason::kRunsStopped || reason == Reason::kPodTerminating ||
                       !waits_for_pods_to_end(reason);
  constexpr const char* kGivenUp = ": a pod that has not ended is then given up";
  if (waits_for_pods_to_end(reason) && waiting.deadline) {
    return Text::due(*waiting.deadline) + (of_pods ? kGivenUp : "");
  }
  if (reason == Reason::kPodDeletionFails) return "no time limit: the pod has to be deleted first";
  const JobText& job = explaining.job;
  if (!of_pods || !job.pool.empty()) return "when its worker has stopped it, or is cut off";
  const seconds lost_after = seconds_in(job.spec, "lostAfterSeconds").value_or(seconds(40));
  if (const auto end = last_grace_end(stopping_runs(explaining))) {
    return Text::due(*end + lost_after) + kGivenUp;
  }
  const Json& pod = at(at(job.spec, "template"), "spec");
  const seconds grace{
      std::clamp<std::int64_t>(int_at(pod, "terminationGracePeriodSeconds", 30), 0, 2'147'483'647)};
  return "the grace of its pods (" + span_text(grace) + ") and lostAfterSeconds (" +
         span_text(lost_after) + ")" + kGivenUp;
}

}  // namespace holdfast::plugin
