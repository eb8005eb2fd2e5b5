// A warm worker's two Leases (docs/internals/workers.md) in the API server's answers, for Slots.
// Everything that is read is checked. Pure.
//
//   WorkLease work("media", "holdfast-work-1b4e");
//   WorkLease::Read read = work.read(200, body);            // of a GET
//   WorkLease::Event event = work.read_event(line);         // of the watch
//   WorkerLease worker("media", "holdfast-worker-1b4e");
//   WorkerReading reading = worker.read(200, body);         // of a GET
//   std::string body = worker.renewed(report, wall_clock);  // the next PUT
#pragma once

#include <string>
#include <string_view>

#include "agent/wire/readings.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

// The API server ends a watch after this time, and the agent opens another.
inline constexpr int kWatchSeconds = 300;

class WorkLease {
 public:
  WorkLease(std::string lease_namespace, std::string name);

  struct Read {
    WorkReading reading;
    std::string version;  // the resourceVersion; kRead
  };
  Read read(int status, std::string_view body) const;

  // A line of the watch.
  struct Event {
    enum class Kind {
      kLease,     // `read` has it as it is now, or says that it is gone
      kBookmark,  // only a newer version
      kExpired,   // 410: the Lease must be read again
      kEnd,       // anything else: the watch is of no more use
    };
    Kind kind = Kind::kEnd;
    Read read;
    std::string why;  // kEnd, for humans
  };
  Event read_event(std::string_view line) const;

  const std::string& path() const { return path_; }
  // Of a watch of what comes after this version.
  std::string watch_path(const std::string& version) const;

 private:
  Read read_lease(const Json& lease) const;

  const std::string name_;
  const std::string path_;
  const std::string watch_path_;
};

class WorkerLease {
 public:
  WorkerLease(std::string lease_namespace, std::string name);

  // Keeps the Lease of a 200.
  WorkerReading read(int status, std::string_view body);
  // The same for the answer to the last renewal. A Lease with another renew time acknowledges
  // nothing.
  WorkerReading read_renewal(int status, std::string_view body);
  // The body of the PUT: the Lease as it was read last, with a new time and this report.
  std::string renewed(const WorkerReport& report, Time now);
  // Of the Lease as it was read last; it names the worker.
  std::string uid() const { return string_at(at(lease_, "metadata"), "uid"); }

  const std::string& path() const { return path_; }

 private:
  const std::string name_;
  const std::string path_;
  Json lease_;
  std::string renew_time_;  // of the last renewal
};

}  // namespace holdfast::agent
