// A warm worker's two Leases (docs/internals/workers.md) in the API server's answers, for Slots.
// Everything that is read is checked. Pure.
//
//   WorkLease work("media", "holdfast-work-1b4e");
//   WorkReading reading = work.read(200, body);             // of a GET
//   WorkLease::Event event = work.read_event(line);         // of the watch
//   WorkerLease worker("media", "holdfast-worker-1b4e");
//   WorkerReading reading = worker.read(200, body);         // of a GET
//   std::string body = worker.renewed(report, wall_clock);  // the next PUT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "agent/wire/lease_body.h"
#include "agent/wire/readings.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

// The API server ends a watch after this time, and the agent opens another.
inline constexpr int kWatchSeconds = 300;

class WorkLease {
 public:
  WorkLease(std::string lease_namespace, std::string name);

  WorkReading read(int status, std::string_view body) const;

  // A line of the watch. A bookmark is only a newer version.
  struct News {
    std::string version;
    std::optional<WorkReading> reading;  // the Lease as it is now, or that it is gone
  };
  struct Expired {};  // 410: the Lease must be read again
  struct End {};      // anything else: the watch is of no more use
  using Event = std::variant<News, Expired, End>;
  Event read_event(std::string_view line) const;

  const std::string& path() const { return path_; }
  // Of a watch of what comes after this version.
  std::string watch_path(const std::string& version) const;

 private:
  const std::string name_;
  const std::string path_;
  const std::string watch_path_;
};

void read_view(const Json& lease, WorkerView& view);

class WorkerLease : public HeldLease<WorkerView> {
 public:
  using HeldLease::HeldLease;

  // The body of the PUT: the Lease as it was read last, with a new time and this report.
  std::string renewed(const WorkerReport& report, Time now);
  // Of the Lease as it was read last; it names the worker.
  std::string uid() const { return string_at(at(lease(), "metadata"), "uid"); }
};

}  // namespace holdfast::agent
