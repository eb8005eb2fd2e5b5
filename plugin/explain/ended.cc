// The facts of a job that has ended: outcome, why, which attempt, what it said, how long, and how
// to run the work again.
#include "core/utf8.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/moments.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::IndexSet;

constexpr Advice kSucceeded = {"all its runs have succeeded",
                               "To run the same work again, as a new job:",
                               {"kubectl holdfast retry {job} -n {ns}"}};

const char* condition_type(const JobText& job) {
  if (job.phase == "Failed") return "Failed";
  return job.phase == "Cancelled" ? "Cancelled" : "Complete";
}

// The attempt that says most about why the job ended so: the last one that ended badly.
const EndText* deciding_end(const JobText& job) {
  const EndText* stopped = nullptr;
  for (auto end = job.history.rbegin(); end != job.history.rend(); ++end) {
    if (job.phase == "Succeeded") return &*end;
    if (end->outcome == "Succeeded") continue;
    // What was stopped because of the outcome is not its cause.
    if (end->outcome != "Cancelled" && end->outcome != "Suspended") return &*end;
    if (!stopped) stopped = &*end;
  }
  return stopped;
}

// Unless the condition has said it already.
std::string words_of(const Explaining& explaining, const EndText& end) {
  std::string words = last_words(explaining, end);
  const std::string in_one_line = clean_text(words, words.size());
  const Json& condition = condition_of(explaining.facts.job, condition_type(explaining.job));
  const bool is_said = clean_at(condition, "message").find(in_one_line) != std::string::npos;
  return is_said ? "" : words;
}

void add_words_of(const Explaining& explaining, const EndText& end, Facts& facts) {
  const std::string words = words_of(explaining, end);
  if (!words.empty()) facts.push_back({"said", "It said", {}, {}, words});
}

void add_duration(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  if (!job.started || !job.completed) return;
  add_fact("took", "Took",
           Text(span_text(*job.completed - *job.started) + ", from ") + Text::clock(*job.started) +
               " to " + Text::clock(*job.completed) + " UTC; " + plural(job.attempt, "attempt"),
           facts);
}

void add_deletion(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  const Json& ttl = at(at(explaining.facts.job, "spec"), "ttlSecondsAfterFinished");
  if (!ttl.is_number_integer() || !job.completed) return;
  const auto at_time = *job.completed + std::chrono::seconds(ttl.get<std::int64_t>());
  add_fact("deleted", "Deleted", Text::moment(at_time) + ", by ttlSecondsAfterFinished", facts);
}

}  // namespace

std::string ended_reason(const Explaining& explaining) {
  return clean_at(condition_of(explaining.facts.job, condition_type(explaining.job)), "reason");
}

void explain_ended(const Explaining& explaining, Model& model) {
  const JobText& job = explaining.job;
  const Json& condition = condition_of(explaining.facts.job, condition_type(job));
  const std::string reason = ended_reason(explaining);
  const bool succeeded = job.phase == "Succeeded";
  const Advice& advice = succeeded ? kSucceeded : advice_on(AnyReason(reason));
  Facts& facts = model.facts;
  const bool by_policy = succeeded && reason == "SuccessPolicy";
  add_fact("what", "What",
           reason + ": " + (by_policy ? advice_on(AnyReason(reason)).means : advice.means), facts);
  if (const std::string why = clean_at(condition, "message"); why != advice.means) {
    add_fact("why", "Why", why, facts);
  }
  if (holds(explaining.facts.job, "Partial")) {
    add_fact("partial", "Partial",
             clean_at(condition_of(explaining.facts.job, "Partial"), "message"), facts);
  }
  add_duration(explaining, facts);
  const EndText* const end = deciding_end(job);
  if (end && !job.many_runs()) {
    add_fact("last", "Attempt", describe_end(explaining, *end), facts);
    if (!succeeded) add_words_of(explaining, *end, facts);
  }
  add_runs(explaining, facts);
  if (end && job.many_runs() && !succeeded) {
    add_fact("last", "Last", describe_end(explaining, *end), facts);
    add_words_of(explaining, *end, facts);
  }
  add_notifications(explaining, facts);
  add_budgets(explaining, facts);
  add_deletion(explaining, facts);
  Gaps gaps = gaps_of(explaining, nullptr);
  if (end) gaps["attempt"] = std::to_string(end->attempt);
  if (const auto failed = IndexSet::parse(job.failed_indexes, IndexSet::kMost);
      failed && !failed->empty()) {
    gaps["index"] = std::to_string(*failed->next(0, IndexSet()));
  }
  model.advice = advice_with(advice, gaps);
}

}  // namespace holdfast::plugin
