#include "operator/observe/window_codec.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "core/json.h"

namespace holdfast::controller {
namespace {

constexpr std::size_t kLongestText = 256 * 1024;
constexpr std::chrono::seconds kLongestSilence{366 * 24 * 3600};

bool parse_mark(const std::string& text, std::uint64_t& mark) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mark);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string encode_windows(std::vector<SilentSubject> subjects) {
  if (subjects.empty()) return "";
  std::sort(subjects.begin(), subjects.end(), [](const auto& a, const auto& b) {
    return std::tie(b.silent, a.subject) < std::tie(a.silent, b.subject);
  });
  if (subjects.size() > kMostSubjects) subjects.resize(kMostSubjects);
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

}  // namespace holdfast::controller
