#include "tests/simulation/acts.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace holdfast::simulation {
namespace {

// In the order of the enumeration.
constexpr std::string_view kNames =
    "create-job edit-spec suspend cancel delete-job recreate-job delete-pod force-delete-pod "
    "strip-labels delete-namespace quota worker-fails image-error unschedulable eviction "
    "node-silent node-power-loss node-deleted lose-request lose-answer delay-request delay-answer "
    "duplicate refuse-429 refuse-500 refuse-503 cut-silently cut-refused slow-watch "
    "half-open-watch break-watch watch-cache-lag compaction outage restart etcd-stall restore "
    "crash clean-restart pause clock-drift server-clock-step refuse-403 hanging-webhook "
    "long-retry-after namespace-fails forge-pod strip-owner broken-pods delete-lease worker-hangs "
    "agent-silent next-image-error edit-queue hold-queue reprioritize recreate-queue edit-pool "
    "recreate-pool kill-worker cut-worker freeze-worker lossy-workers delete-worker-lease "
    "touch-leases send-message restart-worker edit-holder edit-work edit-batch-job "
    "suspend-batch-job delete-batch-job take-back-start newer-status newer-spec deletions-fail "
    "spoil-guard";
static_assert(std::ranges::count(kNames, ' ') == kActs - 1);

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(by, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

const std::vector<std::string>& names() {
  static const auto* const kAll = new std::vector<std::string>(split(std::string(kNames), ' '));
  return *kAll;
}

}  // namespace

const char* to_string(Act act) { return names()[static_cast<std::size_t>(act)].c_str(); }

std::optional<Act> parse_act(const std::string& name) {
  const auto found = std::find(names().begin(), names().end(), name);
  if (found == names().end()) return std::nullopt;
  return static_cast<Act>(found - names().begin());
}

bool Selection::has(int event, std::uint64_t strike) const {
  if (everything) return true;
  const auto found = events.find(event);
  return found != events.end() && (!found->second || found->second->count(strike) > 0);
}

std::string Selection::text() const {
  if (everything) return "all";
  std::string text;
  for (const auto& [event, strikes] : events) {
    text += (text.empty() ? "" : ",") + std::to_string(event);
    if (!strikes) continue;
    for (const std::uint64_t strike : *strikes) text += ":" + std::to_string(strike);
  }
  return text.empty() ? "none" : text;
}

std::optional<Selection> Selection::parse(const std::string& text) {
  Selection selection;
  if (text == "all") return selection;
  selection.everything = false;
  if (text == "none") return selection;
  for (const std::string& item : split(text, ',')) {
    const std::vector<std::string> parts = split(item, ':');
    const auto event = parse_number(parts[0]);
    if (!event) return std::nullopt;
    auto& strikes = selection.events[static_cast<int>(*event)];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto strike = parse_number(parts[i]);
      if (!strike) return std::nullopt;
      if (!strikes) strikes.emplace();
      strikes->insert(*strike);
    }
  }
  return selection;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Strikes::open(const ScriptEvent& event, int target) { open_[event.id] = {event, target}; }

void Strikes::close(int event) { open_.erase(event); }

std::optional<std::uint64_t> Strikes::strike(Act act, int target, int weight) {
  for (auto& [id, open] : open_) {
    if (open.event.act != act || (open.target >= 0 && open.target != target)) continue;
    const std::uint64_t number = open.asked++;
    const std::uint64_t drawn = mix(open.event.seed, number);
    const auto chance = static_cast<std::uint64_t>(open.event.permille * weight);
    // The first one always, so that an act that is drawn happens.
    if (number > 0 && drawn % 1000 >= chance) continue;
    if (!selection_.has(id, number)) continue;
    fired(act);
    struck_[id].push_back(number);
    return mix(drawn, number);
  }
  return std::nullopt;
}

}  // namespace holdfast::simulation
