// The model as JSON. What it has is a promise to whoever reads it: docs/explain-model.md, and the
// golden files of tests/unit/plugin/explain.
#include <utility>

#include "plugin/explain/json_put.h"
#include "plugin/explain/model.h"

namespace holdfast::plugin {
namespace {

// {"text", "time", "parts"}: the last two where it speaks of a moment.
Json sentence_of(const Text& text, Time now) {
  Json json = {{"text", text.at(now)}};
  Json parts = Json::array();
  for (const Text::Piece& piece : text.pieces()) {
    if (!piece.moment) {
      parts.push_back(piece.words);
      continue;
    }
    const std::string time = format_time(*piece.moment);
    if (!json.contains("time")) json["time"] = time;
    parts.push_back({{"time", time}, {"as", to_string(piece.form)}});
  }
  if (json.contains("time")) json["parts"] = std::move(parts);
  return json;
}

Json fact_of(const Fact& fact, Time now) {
  Json json = fact.text.empty() ? Json::object() : sentence_of(fact.text, now);
  json["label"] = fact.label;
  for (const Text& more : fact.more) json["more"].push_back(sentence_of(more, now));
  put(json, "words", fact.words);
  return json;
}

Json job_of(const Model& model) {
  Json json = {{"namespace", model.namespace_},
               {"name", model.name},
               {"uid", model.uid},
               {"resourceVersion", model.resource_version},
               {"attempt", model.attempt},
               {"hasEnded", model.has_ended}};
  put(json, "phase", model.phase);
  put(json, "stage", model.stage);
  put(json, "queue", model.queue);
  put(json, "workerPool", model.pool);
  put(json, "created", model.created);
  put(json, "started", model.started);
  put(json, "ended", model.ended);
  return json;
}

void put_places(Json& json, const std::string& pod, const std::string& node,
                const std::string& worker) {
  put(json, "pod", pod);
  put(json, "node", node);
  put(json, "worker", worker);
}

Json run_of(const RunText& run) {
  Json json = {{"index", run.index}, {"attempt", run.attempt}};
  put_places(json, run.pod, run.node, run.worker);
  put(json, "start", run.start);
  put(json, "nextAttempt", run.next_attempt);
  return json;
}

// What its fact says, and the numbers.
void put_runs(const RunsModel& runs, Json& json) {
  json["wanted"] = runs.wanted;
  json["succeeded"] = runs.succeeded;
  json["failed"] = runs.failed;
  json["open"] = runs.open;
  put(json, "completedIndexes", runs.completed_indexes);
  put(json, "failedIndexes", runs.failed_indexes);
  json["begun"] = Json::array();
  for (const RunText& run : runs.begun) json["begun"].push_back(run_of(run));
}

Json stage_of(const StageModel& stage) {
  Json json = {{"name", stage.name}, {"phase", stage.phase}, {"current", stage.is_current}};
  put(json, "start", stage.start);
  put(json, "end", stage.end);
  put(json, "note", stage.note);
  return json;
}

Json attempt_of(const AttemptModel& attempt) {
  Json json = {{"attempt", attempt.attempt},
               {"state", attempt.state},
               {"waits", attempt.waits},
               {"count", attempt.count},
               {"start", format_time(attempt.start)}};
  if (attempt.index) json["index"] = *attempt.index;
  if (attempt.exit_code) json["exitCode"] = *attempt.exit_code;
  put(json, "stage", attempt.stage);
  put(json, "reason", attempt.reason);
  put_places(json, attempt.pod, attempt.node, attempt.worker);
  put(json, "end", attempt.end);
  put(json, "note", attempt.note);
  put(json, "words", attempt.words);
  return json;
}

Json bounds_of(const std::vector<AttemptModel>& attempts) {
  Json json = Json::array();
  if (attempts.empty()) return json;
  for (const BoundModel& bound : attempts.back().bounds) {
    json.push_back({{"letter", std::string(1, bound.letter)},
                    {"name", bound.name},
                    {"time", format_time(bound.at)}});
  }
  return json;
}

}  // namespace

Json to_json(const Model& model, Time now) {
  Json json = {{"apiVersion", "explain.holdfast.dev/v1alpha1"},
               {"kind", "Explanation"},
               {"readAt", format_time(now)},
               {"job", job_of(model)},
               {"state", model.state},
               {"summary", sentence_of(model.summary, now)},
               {"needsPerson", model.needs_person},
               {"advice", {{"text", model.advice.text}, {"commands", model.advice.commands}}},
               {"facts", Json::array()},
               {"stages", Json::array()},
               {"attempts", Json::array()},
               {"bounds", bounds_of(model.attempts)}};
  put(json, "reason", model.reason);
  put(json, "link", model.link);
  for (const Fact& fact : model.facts) {
    json["facts"].push_back(fact.name);
    json[fact.name] = fact_of(fact, now);
  }
  put_runs(model.runs, json["runs"]);
  for (const StageModel& stage : model.stages) json["stages"].push_back(stage_of(stage));
  for (const AttemptModel& one : model.attempts) json["attempts"].push_back(attempt_of(one));
  return json;
}

}  // namespace holdfast::plugin
