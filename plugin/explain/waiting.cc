// The facts of a job that has not ended: what, why, since when, what next, by when, and what to do.
#include <algorithm>
#include <charconv>

#include "plugin/explain/parts.h"
#include "plugin/terminal/cells.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;

// In a job with many runs the words of one run begin with "run 17: ".
std::optional<std::int64_t> run_named_in(std::string_view message) {
  constexpr std::string_view kStart = "run ";
  const std::size_t found = message.find(kStart);
  // The stage's name may stand in front.
  if (found == std::string_view::npos || (found > 0 && !message.substr(0, found).ends_with(": "))) {
    return std::nullopt;
  }
  message.remove_prefix(found + kStart.size());
  std::int64_t index = 0;
  const auto [rest, error] =
      std::from_chars(message.data(), message.data() + message.size(), index);
  const bool ends = rest != message.data() + message.size() && *rest == ':';
  return error == std::errc() && ends ? std::optional(index) : std::nullopt;
}

// The run that the page is about: the one in the words, else the only one, else the open run that
// has been at it for longest.
const RunText* run_in_question(const JobText& job) {
  if (job.runs.empty()) return nullptr;
  if (!job.many_runs()) return &job.runs.front();
  if (const auto index = job.waiting ? run_named_in(job.waiting->message) : std::nullopt) {
    const auto named = std::find_if(job.runs.begin(), job.runs.end(),
                                    [&](const RunText& run) { return run.index == *index; });
    if (named != job.runs.end()) return &*named;
  }
  const RunText* oldest = nullptr;
  for (const RunText& run : job.runs) {
    if (run.next_attempt || !run.start) continue;
    if (!oldest || *run.start < *oldest->start) oldest = &run;
  }
  return oldest ? oldest : &job.runs.front();
}

void add_outcome(const Explaining& explaining, Facts& facts) {
  const Json& job = explaining.facts.job;
  for (const char* const type : {"FailureTarget", "SuccessCriteriaMet"}) {
    const Json& condition = condition_of(job, type);
    if (string_at(condition, "status") != "True") continue;
    const bool fails = std::string_view(type) == "FailureTarget";
    add_fact("outcome", "Outcome",
             std::string(fails ? "decided: Failed, " : "decided: Succeeded, ") +
                 clean_at(condition, "reason") + ": " + clean_at(condition, "message"),
             facts);
    return;
  }
  if (holds(job, "ResultReady")) {
    add_fact("outcome", "Outcome", "decided: Succeeded. Its results can be used already.", facts);
  }
}

// What needs a person may be another thing than what it waits for now.
void add_stalled(const Explaining& explaining, Facts& facts) {
  const Json& condition = condition_of(explaining.facts.job, "Stalled");
  const auto& waiting = explaining.job.waiting;
  const std::string reason = clean_at(condition, "reason");
  if (!holds(explaining.facts.job, "Stalled") || (waiting && waiting->reason == reason)) return;
  add_fact("stalled", "Stalled", reason + ": " + clean_at(condition, "message"), facts);
}

// Why the last attempt failed is the next question of whoever reads that it has.
void add_last_end(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  if (job.history.empty()) return;
  const EndText& last = job.history.back();
  if (last.outcome == "Succeeded") return;
  add_fact("last", "Last", describe_end(explaining, last), facts);
  facts.back().words = last_words(explaining, last);
}

constexpr Advice kSlowReplica = {
    "",
    "Read the log of that replica, or wait: if it dies, another one takes the job.",
    {"kubectl logs {pod} -n {ns} --tail=50"}};

constexpr Advice kHeldQueue = {
    "",
    "Let the queue start jobs again, if nobody holds it for a reason.",
    {"kubectl patch jq {queue} -n {ns} --type=merge -p '{\"spec\":{\"hold\":false}}'"}};

constexpr Advice kFullKey = {
    "",
    "Wait: as many jobs of its key run as concurrencyPerKey of the queue allows, so a higher priority alone does not start it.",
    {"kubectl get jq {queue} -n {ns} -o wide"}};

constexpr Advice kFullQuota = {
    "",
    "A quota of the namespace is used up: raise it, or run less at a time. Otherwise the job goes on when other pods end.",
    {"kubectl describe quota -n {ns}"}};

constexpr Advice kRejected = {
    "",
    "A policy or webhook of the cluster rejects the pod: suspend the job, change what the message names, and resume. Or "
    "ask the owner of the policy.",
    {"kubectl holdfast suspend {job} -n {ns}"}};

constexpr Advice kNoWorkerStarts = {
    "",
    "Its workers cannot start, and the pool's message says why: correct the pool's template.",
    {"kubectl get pods -n {ns} -l holdfast.dev/worker-pool={pool}",
     "kubectl edit wp {pool} -n {ns}"}};

// Where the objects say more than the reason.
const Advice* special_advice(const Explaining& explaining, const AnyReason& reason) {
  const std::string& message = explaining.job.waiting->message;
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (reason == Reason::kQueued) {
    // No priority helps then.
    if (bool_at(at(explaining.facts.queue, "spec"), "hold")) return &kHeldQueue;
    if (is_key_full(explaining)) return &kFullKey;
  }
  if (reason == Reason::kPodCreationRefused) {
    if (says("exceeded quota")) return &kFullQuota;
    if (says("ValidatingAdmissionPolicy") || says("admission webhook")) return &kRejected;
  }
  const bool fails = int_at(at(explaining.facts.pool, "status"), "failedStarts") > 0;
  return reason == Reason::kWorkerAwaited && fails ? &kNoWorkerStarts : nullptr;
}

const Advice& advice_of(const Explaining& explaining) {
  const JobText& job = explaining.job;
  if (!job.waiting) return advice_on(Reason::kOperatorAwaited);
  const AnyReason reason(job.waiting->reason);
  if (const Advice* const special = special_advice(explaining, reason)) return *special;
  // How to correct the cause comes before how to wait less.
  if (reason == Reason::kRetryBackoff && !job.history.empty()) {
    const Advice& cause = advice_on(AnyReason(job.history.back().reason));
    if (*cause.act != 0) return cause;
  }
  return advice_on(reason);
}

}  // namespace

std::string waiting_reason(const Explaining& explaining) {
  const auto& waiting = explaining.job.waiting;
  return waiting ? wait_of(explaining, *waiting).reason : to_string(Reason::kOperatorAwaited);
}

void explain_waiting(const Explaining& explaining, Model& model) {
  const JobText& job = explaining.job;
  const OperatorText operator_text = judge_operator(explaining);
  const RunText* const run = run_in_question(job);
  const Advice* advice = &advice_of(explaining);
  Facts& facts = model.facts;
  if (job.waiting) {
    const Wait wait = wait_of(explaining, *job.waiting);
    advice = wait.advice ? wait.advice : advice;
    add_fact("what", "What", wait.reason + ": " + wait.means, facts);
    add_fact("why", "Why", wait.why, facts);
    if (wait.since) add_fact("since", "Since", Text::moment(*wait.since), facts);
    add_fact("next", "Next", wait.next, facts);
    add_fact("by", "By", wait.by, facts);
  } else {
    add_fact("what", "What", advice_on(Reason::kOperatorAwaited).means, facts);
  }
  const std::string& unseen = explaining.facts.operator_unseen;
  add_fact("operator", "Operator", operator_text.text.empty() ? unseen : operator_text.text, facts);
  add_stalled(explaining, facts);
  add_outcome(explaining, facts);
  add_notifications(explaining, facts);
  add_queue(explaining, facts);
  add_pool(explaining, facts);
  add_runs(explaining, facts);
  add_stopping(explaining, facts);
  if (!job.many_runs() && run) add_fact("progress", "Progress", run->progress, facts);
  const bool in_pause = job.waiting && !job.many_runs() && job.open_runs() == 0;
  if (in_pause) add_last_end(explaining, facts);
  add_budgets(explaining, facts);
  Gaps gaps = gaps_of(explaining, run);
  if (const auto stopping = stopping_runs(explaining); !stopping.empty()) {
    gaps["pod"] = shell_word(stopping.front().pod);
  } else if (explaining.outlook == Outlook::kStopped && job.many_runs()) {
    gaps.erase("pod");  // nobody knows which one
  }
  if (!operator_text.text.empty() && operator_text.replica.empty()) {
    advice = &advice_on(Reason::kOperatorAwaited);
  } else if (!operator_text.text.empty()) {
    gaps["pod"] = shell_word(operator_text.replica);
    gaps["ns"] = shell_word(operator_text.replica_namespace);
    advice = &kSlowReplica;
  }
  model.advice = advice_with(*advice, gaps);
}

}  // namespace holdfast::plugin
