#include "plugin/ui/job_filter.h"

#include <algorithm>
#include <cctype>

#include "plugin/base/command.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMost = 1024;
constexpr const char* kKeys = "phase: reason: queue: pool: node: ns: label: age> age< since>";

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Error wrong(std::string_view word, const std::string& why) {
  return make_error(ErrorCode::kInvalid, std::string(word) + ": " + why);
}

// "age>1h", "since<5m". Nothing: it is no such word.
Result<bool> take_span(std::string_view word, JobFilter& filter) {
  const std::size_t sign = word.find_first_of("<>");
  if (sign == std::string_view::npos) return false;
  const std::string_view key = word.substr(0, sign);
  if (key != "age" && key != "since") {
    return wrong(word, "only age and since have < and >, such as age>1h");
  }
  const auto span = parse_duration(word.substr(sign + 1));
  if (!span) return wrong(word, "give a time such as 90s, 5m or 2h");
  auto& spans = key == "age" ? filter.ages : filter.sinces;
  spans.push_back({word[sign] == '>', *span});
  return true;
}

Result<> take(std::string_view word, JobFilter& filter) {
  const Result<bool> is_span = take_span(word, filter);
  if (!is_span.ok()) return is_span.error();
  if (*is_span) return Unit{};
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) {
    filter.words.push_back(lower(word));
    return Unit{};
  }
  const std::string_view key = word.substr(0, colon);
  const auto values = split(word.substr(colon + 1), ',');
  if (values.empty()) return wrong(word, "a value is missing");
  std::vector<std::string>* const list = key == "phase"    ? &filter.phases
                                         : key == "reason" ? &filter.reasons
                                         : key == "queue"  ? &filter.queues
                                         : key == "pool"   ? &filter.pools
                                         : key == "node"   ? &filter.places
                                         : key == "ns"     ? &filter.namespaces
                                         : key == "label"  ? &filter.labels
                                                           : nullptr;
  if (list == nullptr) return wrong(word, std::string("there is ") + kKeys);
  const bool any_case = key == "phase" || key == "reason";
  for (const std::string& value : values) list->push_back(any_case ? lower(value) : value);
  return Unit{};
}

bool is_one_of(const std::vector<std::string>& values, const std::string& text) {
  return values.empty() || std::find(values.begin(), values.end(), text) != values.end();
}

// `labels` is "a=b,c=d,".
bool has_label(const std::string& labels, const std::string& label) {
  const bool has_value = label.find('=') != std::string::npos;
  const std::string wanted = label + (has_value ? "," : "=");
  const std::size_t found = ("," + labels).find("," + wanted);
  return found != std::string::npos;
}

bool is_within(const std::vector<JobFilter::Span>& spans, const std::optional<Time>& time,
               Time now) {
  return std::all_of(spans.begin(), spans.end(), [&](const JobFilter::Span& one) {
    if (!time) return false;
    return one.is_more ? now - *time > one.span : now - *time < one.span;
  });
}

}  // namespace

Result<JobFilter> parse_job_filter(std::string_view text) {
  if (text.size() > kMost) {
    return make_error(ErrorCode::kInvalid, "the filter is longer than 1,024 bytes");
  }
  JobFilter filter;
  for (const std::string& word : split(text, ' ')) {
    if (const Result<> taken = take(word, filter); !taken.ok()) return taken.error();
  }
  return filter;
}

bool holds(const JobFilter& filter, const JobRow& row, Time now) {
  if (!is_one_of(filter.namespaces, row.namespace_) || !is_one_of(filter.queues, row.queue) ||
      !is_one_of(filter.pools, row.pool) || !is_one_of(filter.places, row.place)) {
    return false;
  }
  if (!filter.phases.empty() && !is_one_of(filter.phases, lower(row.phase.get()))) return false;
  if (!filter.reasons.empty() && !is_one_of(filter.reasons, lower(row.waiting.get()))) return false;
  if (!filter.labels.empty() &&
      std::none_of(filter.labels.begin(), filter.labels.end(),
                   [&](const std::string& label) { return has_label(row.labels, label); })) {
    return false;
  }
  if (!is_within(filter.ages, row.created, now) || !is_within(filter.sinces, row.since, now)) {
    return false;
  }
  if (filter.words.empty()) return true;
  const std::string name = lower(row.namespace_ + "/" + row.name);
  return std::all_of(filter.words.begin(), filter.words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

}  // namespace holdfast::plugin
