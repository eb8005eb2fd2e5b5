#include "operator/observe/window_codec.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/json.h"

namespace holdfast::observe {
namespace {

constexpr std::size_t kLongestText = 262'144;
constexpr std::chrono::seconds kLongestSilence{366 * 24 * 3600};

bool parse_mark(const std::string& text, std::uint64_t& mark) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mark);
  return error == std::errc() && end == text.data() + text.size();
}

// The namespace in "<kind>/<namespace>/<name>". A node has no namespace and counts as its own.
std::string namespace_in(const std::string& subject) {
  const std::size_t name = subject.find('/') + 1;
  return subject.substr(name, subject.find('/', name) - name);
}

// The order in which they are kept: first the most silent subject of each tenant, then the second
// of each.
void put_in_turns(std::vector<SilentSubject>& subjects) {
  std::unordered_map<std::string, std::size_t> of;
  std::vector<std::pair<std::size_t, SilentSubject>> turns;
  turns.reserve(subjects.size());
  for (SilentSubject& subject : subjects) {
    const std::size_t turn = of[namespace_in(subject.subject)]++;
    turns.emplace_back(turn, std::move(subject));
  }
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  subjects.clear();
  for (auto& [turn, subject] : turns) subjects.push_back(std::move(subject));
}

}  // namespace

std::string encode_windows(std::vector<SilentSubject> subjects) {
  if (subjects.empty()) return "";
  std::sort(subjects.begin(), subjects.end(), [](const auto& a, const auto& b) {
    return std::tie(b.silent, a.subject) < std::tie(a.silent, b.subject);
  });
  if (subjects.size() > kMostSubjects) {
    put_in_turns(subjects);
    subjects.resize(kMostSubjects);
  }
  Json json = Json::object();
  for (const SilentSubject& subject : subjects) {
    json[subject.subject] = {std::to_string(subject.mark),
                             std::chrono::floor<std::chrono::seconds>(subject.silent).count()};
  }
  return json.dump();
}

std::vector<SilentSubject> decode_windows(std::string_view text) {
  std::vector<SilentSubject> subjects;
  if (text.empty() || text.size() > kLongestText) return subjects;
  const Result<Json> json = parse_json(text);
  if (!json || !json->is_object()) return subjects;
  for (const auto& [name, value] : json->items()) {
    SilentSubject subject;
    if (subjects.size() == kMostSubjects) break;
    if (!value.is_array() || value.size() != 2 || !value[0].is_string()) continue;
    if (!value[1].is_number_integer() || !parse_mark(value[0].get<std::string>(), subject.mark)) {
      continue;
    }
    const std::chrono::seconds silent(value[1].get<std::int64_t>());
    if (silent < silent.zero() || silent > kLongestSilence) continue;
    subject.subject = name;
    subject.silent = silent;
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

}  // namespace holdfast::observe
