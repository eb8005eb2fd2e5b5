#include "plugin/verbs/attempt_place.h"

#include <charconv>
#include <utility>

#include "core/utf8.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/outcome.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

constexpr const char* kIndexAnnotation = "batch.kubernetes.io/job-completion-index";
constexpr std::size_t kMaxReasonBytes = 300;

// An attempt as one of the three sources knows it.
struct Known {
  AttemptPlace place;
  std::int64_t index = 0;
  std::string stage;
};

AttemptPlace place_of(const Json& entry) {
  AttemptPlace place;
  place.attempt = int_at(entry, "attempt");
  place.pod = string_at(entry, "podName");
  const std::string worker = string_at(entry, "workerName");
  place.is_worker = !worker.empty();
  if (place.is_worker) place.pod = worker;
  place.start = parse_time(string_at(entry, "startTime"));
  return place;
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string end_of(const Json& entry) {
  std::string text = string_at(entry, "outcome");
  const std::string reason = clean_text(string_at(entry, "reason"), kMaxReasonBytes);
  if (!reason.empty()) text += ": " + reason;
  return text;
}

std::vector<Known> all_known(const Json& job, const std::vector<Json>& pods) {
  std::vector<Known> known;
  const Json& status = at(job, "status");
  for (const Json& run : at(status, "runs")) {
    known.push_back({place_of(run), int_at(run, "index"), string_at(status, "stage")});
  }
  for (const Json& entry : at(status, "history")) {
    known.push_back({place_of(entry), int_at(entry, "index"), string_at(entry, "stage")});
    known.back().place.end = end_of(entry);
  }
  for (const Json& pod : pods) {
    const Json& labels = at(at(pod, "metadata"), "labels");
    Known one;
    one.place.pod = string_at(at(pod, "metadata"), "name");
    one.place.attempt = number(string_at(labels, reconciler::kAttemptLabel));
    one.index = number(string_at(at(at(pod, "metadata"), "annotations"), kIndexAnnotation));
    one.stage = string_at(labels, reconciler::kStageLabel);
    known.push_back(std::move(one));
  }
  return known;
}

bool is_meant(const Known& one, const AttemptChoice& choice) {
  if (choice.attempt && one.place.attempt != *choice.attempt) return false;
  if (choice.index && one.index != *choice.index) return false;
  return choice.stage.empty() || one.stage == choice.stage;
}

std::string words(const AttemptChoice& choice) {
  std::string text;
  if (choice.attempt) text += " " + std::to_string(*choice.attempt);
  if (choice.index) text += " of index " + std::to_string(*choice.index);
  if (!choice.stage.empty()) text += " of stage " + choice.stage;
  return text;
}

Error nothing_found(const Json& job, const AttemptChoice& choice) {
  const std::string name = string_at(at(job, "metadata"), "name");
  const std::int64_t last = int_at(at(job, "status"), "attempt");
  if (last == 0) {
    return make_error(ErrorCode::kNotFound, job_reference(name) + " has no attempt yet, " +
                                                state_of(job) + "; see kubectl holdfast explain " +
                                                name);
  }
  std::string stages;
  bool has_stage = choice.stage.empty();
  for (const Json& stage : at(at(job, "status"), "stages")) {
    stages += (stages.empty() ? "" : ", ") + string_at(stage, "name");
    has_stage = has_stage || string_at(stage, "name") == choice.stage;
  }
  if (!has_stage) {
    return make_error(ErrorCode::kNotFound,
                      job_reference(name) + " has no stage " + choice.stage +
                          (stages.empty() ? ": it has no stages" : "; its stages are " + stages));
  }
  return make_error(ErrorCode::kNotFound,
                    "nothing is known of an attempt" + words(choice) + ": " + job_reference(name) +
                        " has had attempts 1 to " + std::to_string(last) +
                        ", and keeps the last 10 that ended; see kubectl holdfast explain " + name);
}

}  // namespace

Result<AttemptPlace> find_attempt(const Json& job, const std::vector<Json>& pods,
                                  const AttemptChoice& choice) {
  std::optional<AttemptPlace> best;
  for (const Known& one : all_known(job, pods)) {
    if (!is_meant(one, choice)) continue;
    if (!best || one.place.attempt > best->attempt) best = one.place;
  }
  const std::string name = string_at(at(job, "metadata"), "name");
  const std::string uid = string_at(at(job, "metadata"), "uid");
  if (!best) return nothing_found(job, choice);
  // A run whose pod is being created has no pod's name yet.
  if (best->pod.empty()) best->pod = reconciler::pod_name(name, uid, best->attempt);
  return *best;
}

std::string lines_of_attempt(const std::string& log, const std::string& job, std::int64_t attempt) {
  const std::string prefix = "[" + job + " " + std::to_string(attempt) + "] ";
  std::string lines;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = std::string_view(log).substr(begin, end - begin);
    if (line.starts_with(prefix)) {
      lines += line.substr(prefix.size());
      lines += '\n';
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace holdfast::plugin
