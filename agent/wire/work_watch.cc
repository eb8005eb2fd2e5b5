#include "agent/wire/work_watch.h"

#include <algorithm>
#include <utility>

#include "agent/base/lease_times.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(10);
constexpr double kPauseJitter = 0.5;
// The API server ends each watch after kWatchSeconds.
constexpr Duration kLongestWatch = std::chrono::seconds(kWatchSeconds + 60);

}  // namespace

WorkWatch::WorkWatch(boost::asio::io_context& io, ApiServer server, const WorkLease& lease,
                     Random& random, Handler handler)
    : lease_(lease),
      random_(random),
      handler_(std::move(handler)),
      api_(io, std::move(server)),
      pause_(kFirstPause) {}

void WorkWatch::seen(SteadyTime now, const WorkLease::Read& read) {
  if (read.reading.kind != WorkReading::Kind::kRead) return;
  const bool missed = read.reading.work && read.reading.work->seq > seq_;
  if (begun_ && !missed) return;
  take(read);
  if (open_) {
    api_.abort();
    again(now);
  }
  if (!std::exchange(begun_, true)) open_at_ = now;
}

SteadyTime WorkWatch::tick(SteadyTime now) {
  if (!begun_) return SteadyTime::max();
  if (open_ && now - opened_ >= kLongestWatch) {
    api_.abort();
    again(now);
  }
  if (!open_ && now >= open_at_) open(now);
  return open_ ? opened_ + kLongestWatch : open_at_;
}

void WorkWatch::stop() {
  begun_ = false;
  api_.abort();
}

void WorkWatch::open(SteadyTime now) {
  open_ = true;
  opened_ = now;
  if (!version_.empty()) {
    api_.stream(
        lease_.watch_path(version_), [this](std::string_view line) { line_has_come(line); },
        [this](const ApiReply& reply) { ended(reply); });
    return;
  }
  api_.send("GET", lease_.path(), "", [this](const ApiReply& reply) {
    again(steady_now());
    if (reply.status == 0) return;
    const WorkLease::Read read = lease_.read(reply.status, reply.body);
    take(read);
    handler_(read.reading);
  });
}

void WorkWatch::take(const WorkLease::Read& read) {
  if (!read.version.empty()) version_ = read.version;
  if (read.reading.work) seq_ = std::max(seq_, read.reading.work->seq);
}

void WorkWatch::line_has_come(std::string_view line) {
  using Kind = WorkLease::Event::Kind;
  const WorkLease::Event event = lease_.read_event(line);
  if (event.kind == Kind::kExpired) version_.clear();
  if (event.kind == Kind::kExpired || event.kind == Kind::kEnd) {
    api_.abort();
    return again(steady_now());
  }
  pause_ = kFirstPause;
  take(event.read);
  if (event.kind == Kind::kLease) handler_(event.read.reading);
}

void WorkWatch::ended(const ApiReply& reply) {
  if (reply.status == 410) version_.clear();
  again(steady_now());
}

void WorkWatch::again(SteadyTime now) {
  open_ = false;
  open_at_ = now + about(random_, pause_, kPauseJitter);
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace holdfast::agent
