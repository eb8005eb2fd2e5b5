// Mutates inputs that are lines of JSON (with a header before the first brace) by their structure:
// what comes out is mostly JSON again, with other values in it. Linked to the targets that read it.
#include <array>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned int seed);

using namespace holdfast;

namespace {

using Rng = std::minstd_rand;

constexpr std::array<const char*, 46> kWords = {"",
                                                "Pending",
                                                "Running",
                                                "Backoff",
                                                "Suspended",
                                                "Cancelling",
                                                "Succeeded",
                                                "Failed",
                                                "Cancelled",
                                                "Unknown",
                                                "Lost",
                                                "Hung",
                                                "True",
                                                "False",
                                                "StartTimeout",
                                                "DeadlineExceeded",
                                                "OOMKilled",
                                                "Evicted",
                                                "DisruptionTarget",
                                                "PodScheduled",
                                                "Unschedulable",
                                                "PodCreationRefused",
                                                "PodNameTaken",
                                                "NodeSilent",
                                                "Complete",
                                                "Stalled",
                                                "RetryBackoff",
                                                "TerminatingOrFailed",
                                                "Queued",
                                                "QueueMissing",
                                                "Always",
                                                "Never",
                                                "node-1",
                                                "u-1",
                                                "u-2",
                                                "0",
                                                "1",
                                                "18446744073709551616",
                                                "encode-3-hvfxh",
                                                "encode-4-hvfxh",
                                                "encode-5-hvfxh",
                                                "2026-06-01T11:59:59Z",
                                                "2026-06-01T12:00:00Z",
                                                "2026-06-01T12:00:30.25Z",
                                                "1677-01-01T00:00:00Z",
                                                "9999-12-31T23:59:59Z"};
constexpr std::array<std::int64_t, 18> kNumbers = {
    0,  -1,  1,   2,     3,      4,          5,          7,         15,
    40, 137, 255, 86400, 604800, 2147483647, 2147483648, INT64_MAX, INT64_MIN};

std::size_t below(Rng& rng, std::size_t bound) { return rng() % bound; }

// All values, the document itself first; bounded.
void collect(Json& json, std::vector<Json*>& found) {
  if (found.size() >= 500) return;
  found.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) collect(child, found);
}

Json other_value(Rng& rng, const std::vector<Json*>& values) {
  switch (below(rng, 4)) {
    case 0:
      return kWords[below(rng, kWords.size())];
    case 1:
      return kNumbers[below(rng, kNumbers.size())];
    case 2:
      return below(rng, 3) == 0 ? Json() : Json(below(rng, 2) == 0);
    default:
      return *values[below(rng, values.size())];
  }
}

void mutate(Json& document, Rng& rng) {
  std::vector<Json*> values;
  collect(document, values);
  Json& value = *values[below(rng, values.size())];
  if (value.is_structured() && !value.empty() && below(rng, 4) != 0) {
    const auto chosen =
        std::next(value.begin(), static_cast<std::ptrdiff_t>(below(rng, value.size())));
    if (below(rng, 2) == 0) {
      value.erase(chosen);
    } else if (value.is_array() && value.size() < 16) {
      value.push_back(Json(*chosen));
    } else {
      *chosen = other_value(rng, values);
    }
  } else if (value.is_number_integer() && below(rng, 3) == 0) {
    value = static_cast<std::int64_t>(value.get<std::uint64_t>() + below(rng, 5) - 2);
  } else if (value.is_string() && below(rng, 8) == 0) {
    value = value.get<std::string>() + value.get<std::string>();
  } else {
    const Json other = other_value(rng, values);  // may be what it replaces, or hold it
    value = other;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned int seed) {
  Rng rng(seed);
  if (below(rng, 4) == 0) return LLVMFuzzerMutate(data, size, max);
  fuzz::Input input(data, size);
  std::vector<std::string> lines;
  while (!input.empty()) lines.push_back(input.line());
  if (lines.empty()) return LLVMFuzzerMutate(data, size, max);
  std::string& line = lines[below(rng, lines.size())];
  const std::size_t begin = line.find('{');
  Result<Json> json = parse_json(begin == line.npos ? "" : std::string_view(line).substr(begin));
  if (!json.ok()) return LLVMFuzzerMutate(data, size, max);
  for (std::size_t times = 1 + below(rng, 4); times > 0; --times) mutate(*json, rng);
  line.replace(begin, line.npos, json->dump());
  std::string text;
  for (const std::string& part : lines) text += part + "\n";
  text.pop_back();
  if (text.size() > max) return LLVMFuzzerMutate(data, size, max);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(data));
  return text.size();
}
