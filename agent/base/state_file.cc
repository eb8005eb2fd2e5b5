#include "agent/base/state_file.h"

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace holdfast::agent {
namespace {

constexpr const char* kRunning = "running";
constexpr const char* kWaiting = "waiting";
constexpr const char* kNotRunning = "not-running";

using Phase = AgentState::Phase;

const char* word_of(Phase phase) {
  if (phase == Phase::kRunning) return kRunning;
  return phase == Phase::kWaiting ? kWaiting : kNotRunning;
}

}  // namespace

std::string state_file_of(const std::string& progress_file) { return progress_file + ".agent"; }

std::string format_state(const AgentState& state) {
  return std::string(word_of(state.phase)) + " " +
         std::to_string(state.renewed ? state.renewed->time_since_epoch().count() : 0) + " " +
         std::to_string(state.duration.count()) + "\n";
}

std::optional<AgentState> parse_state(const std::string& text) {
  std::array<char, 16> first{};
  std::int64_t renewed = 0;
  std::int64_t duration = 0;
  const int count =
      std::sscanf(text.c_str(), "%15s %" SCNd64 " %" SCNd64, first.data(), &renewed, &duration);
  if (count != 3) return std::nullopt;
  const std::string_view word = first.data();
  AgentState state;
  if (word == kRunning) state.phase = Phase::kRunning;
  if (word == kWaiting) state.phase = Phase::kWaiting;
  if (word != word_of(state.phase) || renewed < 0 || duration <= 0) return std::nullopt;
  if (renewed > 0) state.renewed = SteadyTime(Duration(renewed));
  state.duration = Duration(duration);
  return state;
}

std::string complaint(const std::optional<AgentState>& state, SteadyTime now) {
  if (!state) return "no agent has started here";
  if (state->phase == Phase::kOver || !state->renewed) return "the command does not run";
  const Duration age = now - *state->renewed;
  if (age < state->duration * 2 / 3) return "";
  if (state->phase == Phase::kWaiting) {
    return "the agent waits for the Lease, and has not been at work for " + human_duration(age);
  }
  return "the last renewal that was acknowledged is " + human_duration(age) +
         " old, and the Lease is " + human_duration(state->duration) + " long";
}

}  // namespace holdfast::agent
