#include "plugin/retry_job.h"

#include <charconv>
#include <optional>
#include <utility>

#include "plugin/outcome.h"
#include "plugin/print.h"
#include "reconciler/index_set.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

using reconciler::IndexSet;

constexpr std::string_view kMark = "-retry-";
constexpr std::size_t kMaxName = 51;
constexpr int kMostRetries = 9999;

Error wrong(std::string message) { return make_error(ErrorCode::kInvalid, std::move(message)); }

// Where "-retry-N" begins.
std::optional<std::size_t> mark_of(const std::string& name) {
  const std::size_t at = name.rfind(kMark);
  if (at == std::string::npos || at == 0) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(at + kMark.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || number < 1 || number > kMostRetries) return std::nullopt;
  return at;
}

Status keep_failed_indexes(const Json& source, Json& spec) {
  const std::string name = string_at(at(source, "metadata"), "name");
  if (string_at(spec, "completionMode") != "Indexed") {
    return wrong(job_reference(name) + " has no indexes; leave out --failed-indexes");
  }
  const Json& status = at(source, "status");
  const std::string stage = string_at(status, "stage", "main");
  if (stage != "main") {
    return wrong("the indexes that failed are those of stage " + stage +
                 ", and a new job begins with main; leave out --failed-indexes");
  }
  const std::string failed = string_at(status, "failedIndexes");
  if (failed.empty()) {
    return wrong("no index of " + job_reference(name) +
                 " failed for good; leave out --failed-indexes to run all again");
  }
  if (!IndexSet::parse(failed, IndexSet::kMost)) {
    return wrong("status.failedIndexes of " + job_reference(name) +
                 " is damaged: " + failed.substr(0, 80));
  }
  spec["indexes"] = failed;
  return Unit{};
}

}  // namespace

int retry_number(const std::string& name) {
  const auto at = mark_of(name);
  return at ? std::stoi(name.substr(*at + kMark.size())) : 0;
}

std::string retry_name(const std::string& source, int number) {
  const auto at = mark_of(source);
  const std::string end = std::string(kMark) + std::to_string(number);
  std::string base = (at ? source.substr(0, *at) : source).substr(0, kMaxName - end.size());
  while (base.ends_with('-')) base.pop_back();
  return base + end;
}

Result<Json> retry_job(const Json& source, bool failed_indexes) {
  const Json& metadata = at(source, "metadata");
  const std::string name = string_at(metadata, "name");
  if (!has_ended(source)) {
    return wrong(job_reference(name) + " has not ended, " + state_of(source) +
                 "; wait for its end, or cancel it: kubectl holdfast cancel " + name);
  }
  Json spec = at(source, "spec");
  spec.erase("suspend");
  spec.erase("cancel");
  if (failed_indexes) {
    const Status kept = keep_failed_indexes(source, spec);
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
