#include "core/worker_protocol.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/agent_protocol.h"
#include "core/json.h"
#include "core/utf8.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxUidBytes = 128;
constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxMessageBytes = 256;
constexpr std::int64_t kMostGrace = 2'147'483'647;
constexpr std::array<std::pair<AnswerKind, const char*>, 4> kKinds{{
    {AnswerKind::kRunning, "running"},
    {AnswerKind::kEnded, "ended"},
    {AnswerKind::kStopped, "stopped"},
    {AnswerKind::kReturned, "returned"},
}};

Error wrong(const std::string& what) { return make_error(ErrorCode::kInvalid, what); }

void put_id(const AttemptId& id, Json& json) {
  json["job"] = id.job_uid;
  json["run"] = id.run;
  json["attempt"] = id.attempt;
}

Result<AttemptId> get_id(const Json& json) {
  AttemptId id{string_at(json, "job"), int_at(json, "run", -1), int_at(json, "attempt")};
  // Without control characters, whose escapes would make 32 of them too long for a report.
  if (id.job_uid.empty() || id.job_uid != clean_text(id.job_uid, kMaxUidBytes)) {
    return wrong("no UID of a job");
  }
  if (id.run < 0 || id.attempt < 1) return wrong("no run and attempt of a job");
  return id;
}

Json answer_json(const Answer& answer) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const auto& one) { return one.first == answer.kind; });
  Json json = {{"is", kind->second}};
  put_id(answer.id, json);
  if (answer.kind == AnswerKind::kEnded) json["code"] = answer.exit_code;
  if (!answer.result.empty()) json["result"] = answer.result;
  if (answer.mark > 0) json["mark"] = answer.mark;
  if (answer.age_seconds > 0) json["age"] = answer.age_seconds;
  if (!answer.message.empty()) json["message"] = answer.message;
  if (!answer.checkpoint.empty()) json["checkpoint"] = answer.checkpoint;
  return json;
}

Result<Answer> get_answer(const Json& json) {
  Answer answer;
  Result<AttemptId> id = get_id(json);
  if (!id) return id.error();
  answer.id = std::move(*id);
  const std::string is = string_at(json, "is");
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) { return one.second == is; });
  if (kind == kKinds.end()) return wrong("an answer that is neither running nor over");
  answer.kind = kind->first;
  answer.exit_code = static_cast<int>(std::clamp<std::int64_t>(int_at(json, "code"), 0, 255));
  const std::string result = string_at(json, "result");
  answer.result = answer.exit_code == 0 ? clean_text(result, kMaxResultBytes)
                                        : last_lines(result, kMaxResultBytes);
  answer.mark = std::max<std::int64_t>(int_at(json, "mark"), 0);
  answer.age_seconds = std::max<std::int64_t>(int_at(json, "age"), 0);
  answer.message = clean_text(string_at(json, "message"), kMaxMessageBytes);
  answer.checkpoint = string_at(json, "checkpoint");
  if (answer.checkpoint.size() > kMaxCheckpointBytes) return wrong("a checkpoint that is too long");
  return answer;
}

// The document of an annotation: an object with a list of attempts.
Result<Json> get_document(std::string_view text) {
  if (text.size() > kMaxProtocolBytes) return wrong("more than 16 KB");
  Result<Json> json = parse_json(text);
  if (!json) return wrong(json.error().message);
  const Json& attempts = at(*json, "attempts");
  if (!attempts.is_array()) return wrong("no list of attempts");
  if (attempts.size() > kMaxProtocolEntries) return wrong("too many attempts");
  if (int_at(*json, "seq", -1) < 0) return wrong("no seq");
  return json;
}

template <class Entries>
bool repeats(const Entries& entries) {
  for (auto one = entries.begin(); one != entries.end(); ++one) {
    const bool again =
        std::any_of(entries.begin(), one, [&](const auto& other) { return other.id == one->id; });
    if (again) return true;
  }
  return false;
}

// The command's end is news. `returned` is not: a command that never began has no texts.
bool is_end(const Answer& answer) {
  return answer.kind == AnswerKind::kEnded || answer.kind == AnswerKind::kStopped;
}

void clear_texts(Answer& answer) {
  answer.result.clear();
  answer.message.clear();
  answer.checkpoint.clear();
}

std::string report_text(const WorkerReport& report) {
  Json json = {{"work", report.work_uid}, {"seq", report.seq}, {"life", report.life}};
  if (report.draining) json["draining"] = true;
  json["attempts"] = Json::array();
  for (const Answer& answer : report.answers) json["attempts"].push_back(answer_json(answer));
  return json.dump();
}

}  // namespace

std::string encode_work(const Work& work) {
  Json json = {{"seq", work.seq}, {"attempts", Json::array()}};
  if (work.draining) json["draining"] = true;
  if (work.end) {
    json["end"] = {{"at", format_time(work.end->at)}, {"grace", work.end->grace.count()}};
  }
  for (const WorkEntry& entry : work.entries) {
    Json one = {{"name", entry.job_name}, {"do", entry.stop ? "stop" : "run"}};
    put_id(entry.id, one);
    if (entry.message > 0) one["message"] = entry.message;
    json["attempts"].push_back(std::move(one));
  }
  return json.dump();
}

std::string encode_report(const WorkerReport& report) {
  std::string text = report_text(report);
  if (text.size() <= kMaxProtocolBytes) return text;
  WorkerReport fits = report;
  const auto shorten = [&](auto may, auto change) {
    for (auto answer = fits.answers.rbegin(); answer != fits.answers.rend(); ++answer) {
      if (text.size() <= kMaxProtocolBytes) return;
      if (!may(*answer)) continue;
      change(*answer);
      text = report_text(fits);
    }
  };
  shorten([](const Answer& one) { return !is_end(one); }, clear_texts);
  shorten(is_end, [](Answer& one) {
    one.kind = AnswerKind::kRunning;
    one.exit_code = 0;
    clear_texts(one);
  });
  return text;
}

Result<Work> decode_work(std::string_view text) {
  Work work;
  if (text.empty()) return work;
  const Result<Json> json = get_document(text);
  if (!json) return json.error();
  work.seq = int_at(*json, "seq");
  work.draining = bool_at(*json, "draining");
  const Json& end = at(*json, "end");
  const auto ends_at = parse_time(string_at(end, "at"));
  if (ends_at) {
    const std::int64_t grace = std::clamp<std::int64_t>(int_at(end, "grace"), 0, kMostGrace);
    work.end = PodEnd{*ends_at, std::chrono::seconds(grace)};
  }
  for (const Json& one : at(*json, "attempts")) {
    Result<AttemptId> id = get_id(one);
    if (!id) return id.error();
    WorkEntry entry{std::move(*id), string_at(one, "name"), false,
                    std::max<std::int64_t>(int_at(one, "message"), 0)};
    if (entry.job_name.empty() || entry.job_name.size() > kMaxNameBytes) {
      return wrong("no name of a job");
    }
    const std::string what = string_at(one, "do");
    if (what != "run" && what != "stop") return wrong("an entry says neither run nor stop");
    entry.stop = what == "stop";
    work.entries.push_back(std::move(entry));
  }
  if (repeats(work.entries)) return wrong("an attempt twice");
  return work;
}

Result<WorkerReport> decode_report(std::string_view text) {
  WorkerReport report;
  if (text.empty()) return report;
  const Result<Json> json = get_document(text);
  if (!json) return json.error();
  report.work_uid = string_at(*json, "work");
  report.seq = int_at(*json, "seq");
  report.life = string_at(*json, "life");
  report.draining = bool_at(*json, "draining");
  if (report.work_uid.size() > kMaxUidBytes || report.life.size() > kMaxUidBytes) {
    return wrong("a UID that is too long");
  }
  for (const Json& one : at(*json, "attempts")) {
    Result<Answer> answer = get_answer(one);
    if (!answer) return answer.error();
    report.answers.push_back(std::move(*answer));
  }
  if (repeats(report.answers)) return wrong("an attempt twice");
  return report;
}

}  // namespace holdfast
