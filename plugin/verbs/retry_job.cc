#include "plugin/verbs/retry_job.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "plugin/terminal/print.h"
#include "plugin/verbs/outcome.h"
#include "reconciler/api.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

using reconciler::IndexSet;

constexpr std::string_view kMark = "-retry";
constexpr std::size_t kMaxName = 51;
constexpr int kMostRetries = 9999;
constexpr std::size_t kHashWithDash = 6;  // of reconciler::pod_name()

// The parts of "encode-retry-2-2hw9r": "encode" and 2. Any other name has 0.
std::pair<std::string, int> parts_of(const std::string& name) {
  const std::size_t mark = name.rfind(std::string(kMark) + "-");
  if (mark == std::string::npos || mark == 0) return {name, 0};
  const std::string_view rest = std::string_view(name).substr(mark + kMark.size() + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const std::string_view hash = rest.substr(static_cast<std::size_t>(end - rest.data()));
  const bool is_hash = hash.size() == kHashWithDash && hash.rfind('-') == 0;
  if (error != std::errc() || number < 1 || number > kMostRetries || !is_hash) return {name, 0};
  return {name.substr(0, mark), number};
}

Result<> keep_failed_indexes(const Json& source, Json& spec) {
  const std::string name = string_at(at(source, "metadata"), "name");
  if (string_at(spec, "completionMode") != "Indexed") {
    return invalid(job_reference(name) + " has no indexes; leave out --failed-indexes");
  }
  const Json& status = at(source, "status");
  const std::string stage = string_at(status, "stage", "main");
  if (stage != "main") {
    return invalid("the indexes that failed are those of stage " + stage +
                   ", and a new job begins with main; leave out --failed-indexes");
  }
  const std::string failed = string_at(status, "failedIndexes");
  if (failed.empty()) {
    return invalid("no index of " + job_reference(name) +
                   " failed for good; leave out --failed-indexes to run all again");
  }
  if (!IndexSet::parse(failed, IndexSet::kMost)) {
    return invalid("status.failedIndexes of " + job_reference(name) +
                   " is damaged: " + failed.substr(0, 80));
  }
  spec["indexes"] = failed;
  return Unit{};
}

}  // namespace

std::string retry_name(const std::string& source, const std::string& source_uid) {
  auto [base, number] = parts_of(source);
  number = number < kMostRetries ? number + 1 : 1;
  // The names of pods have the same form.
  const std::string end = reconciler::pod_name(std::string(kMark), source_uid, number);
  base.resize(std::min(base.size(), kMaxName - end.size()));
  while (base.ends_with('-')) base.pop_back();
  return base + end;
}

Result<Json> retry_job(const Json& source, bool failed_indexes) {
  const Json& metadata = at(source, "metadata");
  const std::string name = string_at(metadata, "name");
  if (!has_ended(source)) {
    return invalid(job_reference(name) + " has not ended, " + state_of(source) +
                   "; wait for its end, or cancel it: kubectl holdfast cancel " + name + " -n " +
                   string_at(metadata, "namespace"));
  }
  Json spec = at(source, "spec");
  spec.erase("suspend");
  spec.erase("cancel");
  if (failed_indexes) {
    const Result<> kept = keep_failed_indexes(source, spec);
    if (!kept.ok()) return kept.error();
  }
  Json job = {{"apiVersion", reconciler::kJobApiVersion},
              {"kind", reconciler::kJobKind},
              {"spec", std::move(spec)}};
  job["metadata"]["namespace"] = string_at(metadata, "namespace");
  job["metadata"]["annotations"] = {{kRetryOfAnnotation, name},
                                    {kRetryOfUidAnnotation, string_at(metadata, "uid")}};
  const Json& labels = at(metadata, "labels");
  if (labels.is_object() && !labels.empty()) job["metadata"]["labels"] = labels;
  return job;
}

}  // namespace holdfast::plugin
