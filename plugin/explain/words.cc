// The words that several parts of the page use.
#include <algorithm>

#include "api/docs_link.h"
#include "core/utf8.h"
#include "plugin/explain/gaps.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kWordsLimit = 2048;

// From the pod of the attempt, if it still exists.
std::string words_in_pod(const Explaining& explaining, const EndText& end) {
  for (const Json& pod : explaining.facts.pods) {
    if (end.pod.empty() || string_at(at(pod, "metadata"), "name") != end.pod) continue;
    for (const char* const list : {"containerStatuses", "initContainerStatuses"}) {
      for (const Json& container : at(at(pod, "status"), list)) {
        const Json& terminated = at(at(container, "state"), "terminated");
        if (int_at(terminated, "exitCode") == 0) continue;
        const std::string words = last_lines(string_at(terminated, "message"), kWordsLimit);
        if (!words.empty()) return words;
      }
    }
  }
  return "";
}

// Events say "attempt 3 ended (Error): container main ended with exit code 1: no such file".
std::string words_in_events(const Explaining& explaining, const EndText& end) {
  const std::string start = "attempt " + std::to_string(end.attempt) + " ended (";
  for (const Json& event : explaining.facts.events) {
    std::string note = string_at(event, "note", string_at(event, "message"));
    const std::size_t found = note.find(start);
    if (found == std::string::npos) continue;
    const std::size_t words = note.find("): ", found);
    if (words != std::string::npos)
      return clean_text(api::without_reason_link(std::string_view(note).substr(words + 3)),
                        kWordsLimit);
  }
  return "";
}

}  // namespace

void add_fact(std::string_view name, std::string_view label, Text text, Facts& facts) {
  if (text.empty()) return;
  facts.push_back({std::string(name), std::string(label), std::move(text), {}, ""});
}

void add_more(Text text, Facts& facts) {
  if (!text.empty()) facts.back().more.push_back(std::move(text));
}

AdviceModel advice_with(const Advice& advice, const Gaps& gaps) {
  AdviceModel model;
  model.text = fill_gaps(advice.act, gaps).value_or("");
  for (const char* const command : advice.commands) {
    if (!command) continue;
    if (auto filled = fill_gaps(command, gaps)) model.commands.push_back(std::move(*filled));
  }
  return model;
}

void add_notifications(const Explaining& explaining, Facts& facts) {
  if (!holds(explaining.facts.job, "NotificationFailed")) return;
  add_fact("notifications", "Notify",
           clean_at(condition_of(explaining.facts.job, "NotificationFailed"), "message"), facts);
}

Gaps gaps_of(const Explaining& explaining, const RunText* run) {
  const JobText& job = explaining.job;
  const std::int64_t priority = int_at(at(at(explaining.facts.job, "spec"), "queue"), "priority");
  Gaps gaps = {{"job", job.name},
               {"ns", job.namespace_},
               {"uid", job.uid},
               {"queue", job.queue},
               {"higher", std::to_string(priority + 10)},
               {"pool", job.pool}};
  const EndText* const last = job.history.empty() ? nullptr : &job.history.back();
  if (run) {
    gaps["pod"] = run->pod;
    gaps["node"] = run->node;
    gaps["worker"] = run->worker;
    gaps["attempt"] = std::to_string(run->attempt);
    if (job.many_runs()) gaps["index"] = std::to_string(run->index);
  } else if (last) {
    gaps["pod"] = last->pod;
    gaps["attempt"] = std::to_string(last->attempt);
  }
  if (gaps["node"].empty() && last) gaps["node"] = last->node;
  for (auto& [name, value] : gaps) {
    if (!value.empty()) value = shell_word(value);
  }
  return gaps;
}

std::string how_it_ended(const EndText& end) {
  std::string text = end.reason.empty() ? "no reason recorded" : end.reason;
  if (end.exit_code && *end.exit_code != 0) {
    text += ", exit code " + std::to_string(*end.exit_code);
  }
  if (!end.worker.empty()) {
    text += ", on worker " + end.worker;
  } else if (!end.node.empty()) {
    text += ", on " + end.node;
  }
  return text;
}

std::string last_words(const Explaining& explaining, const EndText& end) {
  if (!end.message.empty()) return end.message;
  const std::string in_pod = words_in_pod(explaining, end);
  return in_pod.empty() ? words_in_events(explaining, end) : in_pod;
}

Text describe_end(const Explaining& explaining, const EndText& end) {
  std::string head = "attempt " + std::to_string(end.attempt);
  if (end.index && explaining.job.many_runs()) head += " of run " + std::to_string(*end.index);
  Text text = head + " " + end.outcome;
  if (end.end) text += " " + Text::ago(*end.end);
  if (end.start && end.end) text += " after " + span_text(*end.end - *end.start);
  return text + (": " + how_it_ended(end));
}

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t sign = count < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > 3 + sign; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string plural(std::int64_t count, std::string_view noun) {
  if (count == 1) return "1 " + std::string(noun);
  const bool has_es = noun.ends_with("s") || noun.ends_with("x");
  return count_text(count) + " " + std::string(noun) + (has_es ? "es" : "s");
}

void add_budgets(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  const auto stage = std::find_if(job.stages.begin(), job.stages.end(),
                                  [&](const StageText& one) { return one.name == job.stage; });
  const bool has_stage = stage != job.stages.end();
  const std::int64_t failures = has_stage ? stage->failures : job.failures;
  const std::int64_t disruptions = has_stage ? stage->disruptions : job.disruptions;
  if (failures == 0 && disruptions == 0) return;
  const bool per_index = at(job.spec, "backoffLimitPerIndex").is_number_integer();
  const std::int64_t limit = int_at(job.spec, "backoffLimit", per_index ? -1 : 6);
  std::string text = count_text(failures) + " of " + plural(limit, "failure");
  if (limit < 0) text = plural(failures, "failure");
  if (limit >= 0 && failures > limit) {
    text = plural(failures, "failure") + " (" + count_text(limit) + " are forgiven)";
  }
  if (per_index) {
    text += " (limit for each run: " + count_text(int_at(job.spec, "backoffLimitPerIndex")) + ")";
  }
  const std::string lost = count_text(int_at(job.spec, "disruptionLimit", 50));
  text += job.many_runs()
              ? ", " + plural(disruptions, "loss") + " (limit for each run: " + lost + ")"
              : ", " + count_text(disruptions) + " of " + lost + " losses";
  add_fact("spent", "Spent", text, facts);
}

}  // namespace holdfast::plugin
