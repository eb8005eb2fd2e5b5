#include "lane/change.h"

#include "core/utf8.h"

namespace holdfast::lane {
namespace {

const char* const kWhileSuspended =
    "it changes only while the Job is suspended: suspend the Job, change it, and resume the Job";

}  // namespace

Source Change::settled() const {
  return {hash_of({{"refused", wanted.fields}, {"completions", completions}}), wanted.pod_template};
}

std::optional<Change> change_of(const BatchJob& job, const reconciler::Job& durable,
                                const Source& recorded) {
  if (is_terminal(durable.status.phase) || durable.cancel || durable.deleting) return std::nullopt;
  const Mapped mapped = map_job(job, durable.name);
  const bool is_suspended = durable.status.phase == reconciler::Phase::kSuspended;
  const bool suspends = job.suspended() || durable.spec.suspend;
  Change change;
  change.wanted = source_of(mapped.spec);
  change.fields = changeable(mapped.spec);
  change.completions = int_at(job.spec, "completions", 1);
  const bool template_differs = change.wanted.pod_template != recorded.pod_template;
  const bool completions_differ = change.completions != durable.spec.completions;
  // Both change only while it is Suspended, and then together with the resume.
  const bool resumes = durable.spec.suspend && !job.suspended();
  if (resumes && (template_differs || completions_differ) && !is_suspended) return std::nullopt;
  for (const auto& [field, why] : mapped.by_field) {
    if (change.fields.contains(field)) change.refused[field] = why;
  }
  if (completions_differ && !suspends) change.refused["completions"] = kWhileSuspended;
  if (!change.refused.empty()) {
    const Json refused(change.refused);
    change.wanted.fields = hash_of({change.wanted.fields, refused, change.completions});
  }
  for (const auto& [field, why] : change.refused) change.fields.erase(field);
  if (completions_differ && is_suspended) {
    change.fields["completions"] = at(mapped.spec, "completions");
    change.sends_completions = true;
  }
  if (template_differs && is_suspended) {
    change.fields["template"] = at(mapped.spec, "template");
  } else {
    change.wanted.pod_template = recorded.pod_template;
  }
  return change;
}

std::vector<Json> one_by_one(const Json& fields) {
  const Json& suspend = at(fields, "suspend");
  const bool suspends = suspend == true;
  std::vector<Json> steps;
  if (suspends) steps.push_back({{"suspend", suspend}});
  for (const auto& [field, value] : fields.items()) {
    if (field != "suspend") steps.push_back({{field, value}});
  }
  if (!suspends) steps.push_back({{"suspend", suspend}});
  return steps;
}

std::string text_of(const Refusals& refused) {
  std::string text;
  for (const auto& [field, why] : refused) text += (text.empty() ? "" : "; ") + field + ": " + why;
  return utf8_prefix(std::move(text), kMostText);
}

}  // namespace holdfast::lane
