// An Event object (events.k8s.io/v1): what was recorded, and what the server has. Internal to the
// recorder of Events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/json_fwd.h"
#include "core/time.h"
#include "operator/events/event_pace.h"
#include "operator/events/events.h"

namespace holdfast::events {

// The API's limits, in bytes.
inline constexpr std::size_t kMaxNote = 1024;
inline constexpr std::size_t kMaxWord = 128;

struct Series {
  ObjectReference regarding;
  bool warning = false;
  std::string reason, action, note;
  std::string name;
  Time first{};
  Time last{};
  std::int64_t count = 0;    // recorded
  std::int64_t written = 0;  // of these, written to the server
  bool exists = false;       // the server has it
  bool queued = false;
};
using SeriesPtr = std::shared_ptr<Series>;

// Without a name, a time and a count.
Series series_of(const ObjectReference& regarding, const EventPace::Entry& entry);
bool is_end(const Series& series);
std::string series_key(const Series& series);
// The same on every replica and after a restart, so that repeats share one object.
std::string event_name(const Series& series);
Json series_json(const Series& series);
// Its note ends with the link of its reason. The link is no part of the key: replicas of two
// versions add to one series.
std::string event_json(const Series& series, const std::string& instance);

}  // namespace holdfast::events
