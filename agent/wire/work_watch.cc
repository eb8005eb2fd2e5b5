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

void WorkWatch::seen(SteadyTime now, const WorkReading& reading) {
  const auto* const view = std::get_if<WorkView>(&reading);
  if (!view) return;
  const bool missed = view->work && view->work->seq > seq_;
  if (begun_ && !missed) return;
  take(*view);
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
    const WorkReading reading = lease_.read(reply.status, reply.body);
    if (const auto* const view = std::get_if<WorkView>(&reading)) take(*view);
    handler_(reading);
  });
}

void WorkWatch::take(const WorkView& view) {
  version_ = view.version;
  if (view.work) seq_ = std::max(seq_, view.work->seq);
}

void WorkWatch::line_has_come(std::string_view line) {
  const WorkLease::Event event = lease_.read_event(line);
  const auto* const news = std::get_if<WorkLease::News>(&event);
  if (!news) {
    if (std::holds_alternative<WorkLease::Expired>(event)) version_.clear();
    api_.abort();
    return again(steady_now());
  }
  pause_ = kFirstPause;
  version_ = news->version;
  if (!news->reading) return;
  if (const auto* const view = std::get_if<WorkView>(&*news->reading)) take(*view);
  handler_(*news->reading);
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
