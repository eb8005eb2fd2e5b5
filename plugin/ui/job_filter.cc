#include "plugin/ui/job_filter.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "plugin/base/command.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMost = 1024;
constexpr const char* kKeys =
    "phase: reason: queue: pool: node: ns: label: is: age> age< since> since<";

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

// As the page prints times: with days, which flags do not have.
std::optional<Duration> span_of(std::string_view text) {
  const std::size_t end = text.find('d');
  if (end == std::string_view::npos) return parse_duration(text);
  const std::string_view count = text.substr(0, end);
  if (count.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto days = parse_duration(std::string(count) + "h");
  constexpr std::chrono::hours kMostDays{36'500};
  if (!days || *days > kMostDays) return std::nullopt;
  if (end + 1 == text.size()) return *days * 24;
  const auto rest = parse_duration(text.substr(end + 1));
  return rest ? std::optional(*days * 24 + *rest) : std::nullopt;
}

// "age>1h", "since<5m". Nothing: it is no such word.
Result<bool> take_span(std::string_view word, JobFilter& filter) {
  const std::size_t sign = word.find_first_of("<>");
  if (sign == std::string_view::npos) return false;
  const std::string_view key = word.substr(0, sign);
  if (key != "age" && key != "since") {
    return wrong(word, "only age and since have < and >, such as age>1h");
  }
  const auto span = span_of(word.substr(sign + 1));
  if (!span) return wrong(word, "give a time such as 90s, 5m, 2h or 3d");
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
  static const std::map<std::string_view, JobFilter::Key> kNames = {
      {"phase", JobFilter::Key::kPhase}, {"reason", JobFilter::Key::kReason},
      {"queue", JobFilter::Key::kQueue}, {"pool", JobFilter::Key::kPool},
      {"node", JobFilter::Key::kPlace},  {"ns", JobFilter::Key::kNamespace},
      {"label", JobFilter::Key::kLabel}, {"is", JobFilter::Key::kIs}};
  const auto name = kNames.find(key);
  if (name == kNames.end()) return wrong(word, std::string("there is ") + kKeys);
  JobFilter::Term term{name->second, {}};
  const bool any_case = key == "phase" || key == "reason";
  for (const std::string& value : values) {
    if (key == "is" && value != "stalled" && value != "late") {
      return wrong(word, "there is is:stalled and is:late");
    }
    term.values.push_back(any_case ? lower(value) : value);
  }
  filter.terms.push_back(std::move(term));
  return Unit{};
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

bool holds(JobFilter::Key key, const std::string& value, const JobRow& row, Time now) {
  using enum JobFilter::Key;
  switch (key) {
    case kPhase:
      return row.phase.empty() ? value == "new" : lower(row.phase.get()) == value;
    case kReason:
      return lower(row.waiting.get()) == value || lower(row.stalled_by.get()) == value;
    case kQueue:
      return row.queue == value;
    case kPool:
      return row.pool == value;
    case kPlace:
      return row.place == value;
    case kNamespace:
      return row.namespace_ == value;
    case kLabel:
      return has_label(row.labels, value);
    case kIs:
      return rank_of(row, now) == (value == "late" ? Rank::kLate : Rank::kStalled);
  }
  return false;
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
  const bool fits = std::all_of(filter.terms.begin(), filter.terms.end(), [&](const auto& term) {
    return std::any_of(term.values.begin(), term.values.end(),
                       [&](const std::string& value) { return holds(term.key, value, row, now); });
  });
  if (!fits || !is_within(filter.ages, row.created, now) ||
      !is_within(filter.sinces, row.since, now)) {
    return false;
  }
  if (filter.words.empty()) return true;
  const std::string name = lower(row.namespace_ + "/" + row.name);
  return std::all_of(filter.words.begin(), filter.words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

}  // namespace holdfast::plugin
