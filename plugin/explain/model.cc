#include "plugin/explain/model.h"

#include "api/docs_link.h"
#include "plugin/base/rank.h"
#include "plugin/explain/parts.h"

namespace holdfast::plugin {
namespace {

// The phase may be that of a wait which will not be.
std::string phase_of(const Explaining& explaining) {
  const JobText& job = explaining.job;
  if (job.phase.empty()) return "not read by any operator yet";
  const bool is_reported = job.has_ended() || job.phase == "Cancelling";
  const std::string next = is_reported ? "" : outlook_words(explaining);
  return next.empty() ? job.phase : next + " (phase " + job.phase + ")";
}

void take_job(const Explaining& explaining, Model& model) {
  const JobText& job = explaining.job;
  model.namespace_ = job.namespace_;
  model.name = job.name;
  model.uid = job.uid;
  model.resource_version = clean_at(at(explaining.facts.job, "metadata"), "resourceVersion");
  model.phase = job.phase;
  model.queue = job.queue;
  model.pool = job.pool;
  model.has_ended = job.has_ended();
  const bool awaits = job.waiting && awaits_administrator(job.waiting->reason);
  model.needs_person = !model.has_ended && (holds(explaining.facts.job, "Stalled") || awaits);
  model.has_many_runs = job.many_runs();
  model.attempt = job.attempt;
  model.created = job.created;
  model.started = job.started;
  model.ended = job.completed;
  model.state = phase_of(explaining);
  if (!model.has_ended && !job.stage.empty()) {
    model.stage = job.stage;
    model.state += ", stage " + job.stage;
  }
  if (model.needs_person) model.state += ", needs a person";
}

// "no node fits the pod: 0/3 nodes are available". The reason's name is no word of a sentence.
Text summary_of(const Model& model) {
  Text what;
  Text why;
  for (const Fact& fact : model.facts) {
    if (fact.name == "what") what = fact.text;
    if (fact.name == "why") why = fact.text;
  }
  const std::string name = model.reason + ": ";
  what = what.with_words([&](std::string words) {
    return words.starts_with(name) ? words.substr(name.size()) : words;
  });
  if (what.empty() || why.empty()) return what.empty() ? why : what;
  // "the node's kubelet does not renew its Lease: node node-2 does not renew its Lease".
  const std::string said = what.at(Time{});
  const std::size_t verb = said.find(" does ");
  const bool repeats =
      verb != std::string::npos && why.at(Time{}).find(said.substr(verb)) != std::string::npos;
  return repeats ? why : what + ": " + why;
}

}  // namespace

Model model_of(const ExplainFacts& facts, Time now) {
  const JobText job = read_job(facts.job);
  const Explaining explaining{facts, job, now, outlook_of(facts.job, job, now)};
  Model model;
  take_job(explaining, model);
  model.reason = model.has_ended ? ended_reason(explaining) : waiting_reason(explaining);
  // The job's own conditions say how it has ended. A kubelet may say what it waits for.
  const std::string_view heading = model.has_ended ? model.reason : heading_of(model.reason);
  if (!heading.empty()) model.link = api::reason_link(heading);
  add_fact("about", "About", clean_at(at(facts.job, "spec"), "description"), model.facts);
  if (model.has_ended) {
    explain_ended(explaining, model);
  } else {
    explain_waiting(explaining, model);
  }
  model.summary = summary_of(model);
  model.runs = runs_model(explaining);
  model.stages = stage_models(explaining);
  model.attempts = attempt_models(explaining);
  return model;
}

std::vector<std::string> explain(const ExplainFacts& facts, Time now, const Page& page) {
  return draw(model_of(facts, now), now, page);
}

}  // namespace holdfast::plugin
