// What a job waits for. Between two of its states: what it waits for in place of the words of a wait
// that will not be.
#include <algorithm>

#include "plugin/explain/parts.h"
#include "plugin/terminal/moments.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;

constexpr const char* kAtOnce = "at once: the operator acts when it reads the change";
constexpr const char* kNotSeen = "the operator has not acted on it yet";

constexpr Advice kCancelBegins = {
    "", "Nothing: a cancel is final. To run the work after all, make a new job."};
constexpr Advice kTimeIsOver = {
    "",
    "Find out what took so long. If the work needs more time, raise spec.activeDeadlineSeconds in "
    "the manifest, and retry the job when it has ended."};

constexpr Advice kTimeEnds = {"",
                              "To give it more time, raise spec.activeDeadlineSeconds before.",
                              {"kubectl edit dj {job} -n {ns}"}};

// The condition that has the job's outcome, or null.
const Json& outcome_of(const Json& job) {
  const bool fails = holds(job, "FailureTarget");
  return condition_of(job, fails ? "FailureTarget" : "SuccessCriteriaMet");
}

std::string whose_time(const Explaining& explaining, Time deadline) {
  const auto deadlines = active_deadlines(explaining.facts.job, explaining.job);
  return deadlines.front().at == deadline && deadlines.front().name == "stage deadline"
             ? "the stage"
             : "the job";
}

// For the page: a field's name is no time.
std::string readable(std::string text, bool has_time) {
  constexpr std::string_view kField = ", or at waiting.deadline";
  const std::size_t found = text.find(kField);
  if (found == std::string::npos) return text;
  return text.replace(found, kField.size(), has_time ? ", or at the time below" : "");
}

void say_stopped(const Explaining& explaining, const WaitingText& waiting, Wait& wait) {
  wait.by = stopped_by(explaining, waiting);
  if (waits_for_pods_to_end(AnyReason(waiting.reason))) return;
  const Json& job = explaining.facts.job;
  wait.reason = to_string(Reason::kRunsStopped);
  wait.means = advice_on(Reason::kRunsStopped).means;
  wait.why.clear();
  wait.since = moment_at(outcome_of(job), "lastTransitionTime");
  wait.next = !explaining.job.stages.empty() ? "the job goes on when they have ended"
              : holds(job, "FailureTarget")  ? "the job is Failed when they have ended"
                                             : "the job is Succeeded when they have ended";
  wait.advice = &advice_on(Reason::kRunsStopped);
}

void say_out_of_time(const Explaining& explaining, Wait& wait) {
  const Time deadline = *first_deadline(explaining.facts.job, explaining.job);
  const std::string who = whose_time(explaining, deadline);
  const bool is_open = explaining.job.open_runs() > 0;
  const bool is_past = deadline <= explaining.now;
  wait.reason = to_string(Reason::kDeadlineExceeded);
  wait.means = is_past ? who + " was active longer than activeDeadlineSeconds"
                       : who + "'s time is over before its next attempt could start";
  if (!is_open) wait.why.clear();
  wait.since.reset();
  wait.next = is_open
                  ? "the operator stops the open runs; " + who + " fails unless they have succeeded"
                  : who + " fails; no further attempt starts";
  wait.by = Text::due(deadline);
  // That of a stage never changes.
  wait.advice = is_past || who == "the stage" ? &kTimeIsOver : &kTimeEnds;
}

void say_asked(const Reason reason, const char* next, Wait& wait) {
  wait.reason = to_string(reason);
  wait.means = advice_on(reason).means;
  wait.why = kNotSeen;
  wait.since.reset();
  wait.next = next;
  wait.by = kAtOnce;
  wait.advice = reason == Reason::kCancelled ? &kCancelBegins : &advice_on(reason);
}

}  // namespace

bool waits_for_pods_to_end(const AnyReason& reason) {
  using enum Reason;
  const auto known = {kRunsStopped, kPodTerminating, kWorkerStopping, kPodCreationUnanswered,
                      kPodDeletionFails};
  return std::any_of(known.begin(), known.end(), [&](Reason one) { return reason == one; });
}

std::string outlook_words(const Explaining& explaining) {
  const Json& job = explaining.facts.job;
  switch (explaining.outlook) {
    case Outlook::kStopped:
      if (!explaining.job.stages.empty()) return "ending";
      return holds(job, "FailureTarget") ? "ends as Failed" : "ends as Succeeded";
    case Outlook::kToBeCancelled:
      return "to be cancelled";
    case Outlook::kToBeSuspended:
      return "to be suspended";
    case Outlook::kOutOfTime:
      return *first_deadline(job, explaining.job) <= explaining.now ? "out of time" : "";
    case Outlook::kNextAttempt:
    case Outlook::kSuspended:
      break;
    case Outlook::kToBeResumed:
      return "to be resumed";
  }
  return "";
}

Wait wait_of(const Explaining& explaining, const WaitingText& waiting) {
  const AnyReason reason(waiting.reason);
  const Outlook outlook = explaining.outlook;
  Wait wait{.reason = waiting.reason,
            .means = advice_on(reason).means,
            .why = waiting.message == advice_on(reason).means ? "" : waiting.message,
            .since = waiting.since,
            .next = readable(waiting.next_action, waiting.deadline || outlook == Outlook::kStopped),
            .by = waiting.deadline ? Text::due(*waiting.deadline)
                                   : "no time limit: it waits until something happens",
            .advice = nullptr};
  switch (outlook) {
    case Outlook::kStopped:
      say_stopped(explaining, waiting, wait);
      break;
    case Outlook::kOutOfTime:
      say_out_of_time(explaining, wait);
      break;
    case Outlook::kToBeCancelled:
      say_asked(Reason::kCancelled,
                explaining.job.stages.empty()
                    ? "the operator stops its runs, and the job is Cancelled when they have ended"
                    : "the operator stops the stage; Always stages run, then the job is Cancelled",
                wait);
      break;
    case Outlook::kToBeSuspended:
      say_asked(Reason::kSuspended,
                "the operator stops its open runs, and the job is Suspended: nothing starts "
                "before a resume",
                wait);
      break;
    case Outlook::kToBeResumed:
      say_asked(Reason::kResuming, "the operator resumes the job: its runs go on", wait);
      break;
    case Outlook::kSuspended:
      // The job is Suspended before its pods have ended.
      if (!stopping_runs(explaining).empty()) wait.why = "its pods are being stopped";
      break;
    case Outlook::kNextAttempt:
      break;
  }
  return wait;
}

}  // namespace holdfast::plugin
