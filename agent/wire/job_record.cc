#include "agent/wire/job_record.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/agent_protocol.h"
#include "core/json.h"
#include "core/utf8.h"

namespace holdfast::agent {
namespace {

using JobVerdict = JobReading::Kind;

constexpr std::size_t kMaxJobWhyBytes = 512;
constexpr std::array kTerminal = {"Succeeded", "Failed", "Cancelled"};
constexpr const char* kFirstStage = "main";

JobAnswer verdict(JobVerdict kind, std::string_view why) {
  JobAnswer answer;
  answer.reading.kind = kind;
  answer.reading.why = clean_text(why, kMaxJobWhyBytes);
  return answer;
}

JobAnswer refusal(const std::string& job_name, int status, std::string_view body) {
  const Result<Json> parsed = parse_json(body);
  const Json& reason = parsed.ok() ? parsed.value() : at(Json(), "");
  // A proxy, or a server that does not serve DurableJobs (yet), answers 404, too.
  if (status == 404 && string_at(at(reason, "details"), "name") == job_name) {
    return verdict(JobVerdict::kOther, "the job was deleted");
  }
  std::string why = "the API server answered " + std::to_string(status);
  const std::string message = string_at(reason, "message");
  if (!message.empty()) why += ": " + message;
  return verdict(JobVerdict::kNone, why);
}

// The last attempt of this run that is on record; null: none.
const Json& run_of(const Json& status, std::int64_t index) {
  const Json* found = &at(Json(), "");
  const Json& runs = at(status, "runs");
  if (!runs.is_array()) return *found;
  for (const Json& run : runs) {
    if (int_at(run, "index") != index) continue;
    if (found->is_null() || int_at(run, "attempt") > int_at(*found, "attempt")) found = &run;
  }
  return *found;
}

bool in_history(const Json& status, std::int64_t attempt) {
  const Json& history = at(status, "history");
  return history.is_array() && std::any_of(history.begin(), history.end(), [&](const Json& one) {
           return int_at(one, "attempt") == attempt;
         });
}

// Why the attempt must not begin; empty: it may.
std::string objection(const Json& job, const AttemptId& id, std::string_view worker_uid) {
  const Json& status = at(job, "status");
  if (string_at(at(job, "metadata"), "uid") != id.job_uid) return "another job has this name";
  const std::string phase = string_at(status, "phase");
  if (std::find(kTerminal.begin(), kTerminal.end(), phase) != kTerminal.end()) {
    return "the job is " + phase;
  }
  const Json& run = run_of(status, id.run);
  if (run.is_null()) return "the job has no such run";
  const std::int64_t attempt = int_at(run, "attempt");
  if (attempt != id.attempt) return "the run has attempt " + std::to_string(attempt);
  if (worker_uid.empty() || string_at(run, "workerUID") != worker_uid) {
    return "the attempt has another place";
  }
  const bool waits_for_next = !string_at(run, "nextAttemptTime").empty();
  if (waits_for_next || in_history(status, id.attempt)) return "the attempt has ended";
  return "";
}

// The stage's part of the spec. Null: the status names a stage that the job has not.
const Json& current_stage(const Json& spec, const std::string& stage) {
  const Json& stages = at(spec, "stages");
  if (!stages.is_array() || stages.empty() || stage.empty() || stage == kFirstStage) return spec;
  const auto found = std::find_if(stages.begin(), stages.end(),
                                  [&](const Json& one) { return string_at(one, "name") == stage; });
  return found == stages.end() ? at(Json(), "") : *found;
}

std::string result_variable(std::string stage) {
  for (char& c : stage) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return "HOLDFAST_RESULT_" + stage;
}

// The stages before this one may have left a result.
void add_stage(const Json& status, const std::string& stage, Assignment& assignment) {
  assignment.variables.emplace_back("HOLDFAST_STAGE", stage);
  const Json& stages = at(status, "stages");
  if (!stages.is_array()) return;
  for (const Json& one : stages) {
    const std::string name = string_at(one, "name");
    if (name == stage) return;
    const std::string result = string_at(one, "result");
    if (!result.empty()) assignment.variables.emplace_back(result_variable(name), result);
  }
}

// A variable ends at its first zero byte.
bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

std::string job_path(const std::string& job_namespace, const std::string& name) {
  return "/apis/holdfast.dev/v1alpha1/namespaces/" + job_namespace + "/durablejobs/" + name;
}

JobAnswer read_job(const std::string& job_name, const AttemptId& id, std::string_view worker_uid,
                   int status_code, std::string_view body) {
  if (status_code != 200) return refusal(job_name, status_code, body);
  const Result<Json> job = parse_json(body);
  const Json& meta = job.ok() ? at(*job, "metadata") : at(Json(), "");
  if (string_at(meta, "name") != job_name || string_at(meta, "uid").empty()) {
    return verdict(JobVerdict::kNone,
                   "the API server answered with something else than a DurableJob");
  }
  const std::string why = objection(*job, id, worker_uid);
  if (!why.empty()) return verdict(JobVerdict::kOther, why);
  const Json& spec = at(*job, "spec");
  const Json& status = at(*job, "status");
  const bool has_stages = !at(spec, "stages").empty();
  const std::string named = string_at(status, "stage");
  const std::string stage = named.empty() ? kFirstStage : named;
  const Json& part = current_stage(spec, stage);
  if (!part.is_object()) return verdict(JobVerdict::kOther, "the job has no stage " + stage);
  JobAnswer answer;
  Assignment& assignment = answer.assignment;
  assignment.job_name = job_name;
  assignment.payload = string_at(part, "payload");
  if (assignment.payload.size() > kMaxPayloadBytes) {
    return verdict(JobVerdict::kOther, "its payload has more than 64 KiB");
  }
  assignment.message = utf8_prefix(string_at(spec, "message"), kMaxJobMessageBytes);
  assignment.variables = {{"HOLDFAST_JOB_NAME", job_name},
                          {"HOLDFAST_JOB_UID", id.job_uid},
                          {"HOLDFAST_JOB_NAMESPACE", string_at(meta, "namespace")},
                          {"HOLDFAST_ATTEMPT", std::to_string(id.attempt)}};
  if (string_at(part, "completionMode") == "Indexed") {
    assignment.variables.emplace_back("JOB_COMPLETION_INDEX", std::to_string(id.run));
  }
  if (has_stages) add_stage(status, stage, assignment);
  const std::string checkpoint = string_at(run_of(status, id.run), "checkpoint");
  if (!checkpoint.empty() && checkpoint.size() <= kMaxCheckpointBytes) {
    assignment.variables.emplace_back(kCheckpointVariable, checkpoint);
  }
  std::erase_if(assignment.variables, [](const auto& one) { return has_zero(one.second); });
  const std::int64_t deadline = int_at(at(part, "heartbeat"), "progressDeadlineSeconds");
  if (deadline > 0) answer.reading.progress_deadline = std::chrono::seconds(deadline);
  answer.reading.kind = JobVerdict::kCurrent;
  return answer;
}

}  // namespace holdfast::agent
