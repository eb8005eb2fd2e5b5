#include "operator/membership/member.h"

#include <algorithm>
#include <utility>

#include "core/pause.h"

namespace holdfast::membership {
namespace {

// A shorter lapse moves no shards.
constexpr std::chrono::seconds kReadingPatience{3};
// How often a renewal is tried within a retry period after a lapse, when time matters most.
constexpr int kTriesAfterLapse = 4;

}  // namespace

const char* to_string(MembershipState state) {
  switch (state) {
    case MembershipState::kStarting:
      return "starting";
    case MembershipState::kJoining:
      return "joining";
    case MembershipState::kActing:
      return "acting";
    case MembershipState::kReading:
      return "reading";
    case MembershipState::kLapsed:
      return "lapsed";
    case MembershipState::kLeaving:
      return "leaving";
  }
  return "";
}

Member::Member(LeaseRequests& requests, Random& random, MemberWatch& watch, ShardCount& shard_count,
               Handlers handlers)
    : loop_(requests.loop()),
      log_(requests.log()),
      requests_(requests),
      watch_(watch),
      shard_count_(shard_count),
      handlers_(std::move(handlers)),
      lease_(requests, random) {}

Member::~Member() {
  loop_.cancel(tick_timer_);
  loop_.cancel(lapse_timer_);
}

void Member::join() {
  if (state_ != State::kStarting) return;
  state_ = State::kJoining;
  tick();
}

bool Member::takes_part() const {
  return state_ == State::kActing || (state_ == State::kReading && !lease_.steps_aside().empty());
}

void Member::tick() {
  Duration next = requests_.config().timings.retry_period;
  const Duration wait = not_before_ - loop_.now();
  if (wait > Duration::zero()) next = std::min(next, wait);
  tick_timer_ = loop_.call_after(next, [this] { tick(); });
  watch_.update();
  beat_if_allowed();
  handlers_.ticked();
}

void Member::beat_if_allowed() {
  if (!beating_ && loop_.now() >= not_before_) spawn(beat());
}

Task<void> Member::beat() {
  beating_ = true;
  auto task = lease_.exists() ? renew() : enter();
  const Result<> done = co_await task;
  beating_ = false;
  if (!done) heed(done.error(), loop_.now(), not_before_);
  if (!done && state_ == State::kLapsed) {
    loop_.cancel(tick_timer_);
    tick_timer_ = loop_.call_after(requests_.config().timings.retry_period / kTriesAfterLapse,
                                   [this] { tick(); });
  }
  if (!done && state_ != State::kLeaving) {
    requests_.report("the member Lease is not renewed", lease_.name(), done.error());
  }
  if (state_ == State::kLeaving) spawn(say_goodbye());
}

Task<Result<>> Member::enter() {
  auto check = shard_count_.check();
  const Result<> checked = co_await check;
  if (!checked || state_ == State::kLeaving) co_return checked;
  auto create = lease_.create();
  const Result<MemberLease::Step> step = co_await create;
  if (!step) co_return step.error();
  if (step->result == MemberLease::Step::Result::kAcknowledged) renewed(step->sent);
  if (step->result == MemberLease::Step::Result::kGone) rejoin_as_new("our member Lease is gone");
  co_return Unit{};
}

Task<Result<>> Member::renew() {
  constexpr int kTries = 2;
  for (int i = 0; i < kTries; ++i) {
    auto task = lease_.renew(reason_to_step_aside());
    const Result<MemberLease::Step> step = co_await task;
    if (!step) co_return step.error();
    switch (step->result) {
      case MemberLease::Step::Result::kAcknowledged:
        renewed(step->sent);
        co_return Unit{};
      case MemberLease::Step::Result::kGone:
        rejoin_as_new("our member Lease is gone");
        co_return Unit{};
      case MemberLease::Step::Result::kReread:
        break;
    }
  }
  co_return make_error(ErrorCode::kConflict, "somebody else writes our member Lease");
}

void Member::renewed(SteadyTime sent) {
  // A process that was paused notices it here at the latest.
  if (state_ == State::kActing || state_ == State::kReading) {
    if (lease_.time_left() <= Duration::zero())
      lapse("our last renewal was older than the renew deadline");
  }
  lease_.confirm(sent);
  requests_.trouble_over();
  watch_.update();
  watch_.proof();
  handlers_.proof();
  if (lease_.time_left() <= Duration::zero()) return;  // its answer took too long
  loop_.cancel(lapse_timer_);
  lapse_timer_ = loop_.call_at(lease_.deadline(), [this] {
    lapse_timer_ = 0;
    lapse("our member Lease could not be renewed within the renew deadline");
  });
  if (state_ == State::kLapsed) {
    read_world();
  } else if (state_ == State::kJoining) {
    state_ = State::kActing;
  }
  handlers_.changed();
}

void Member::lapse(const char* why) {
  ++tenure_;
  handlers_.drop_all("lapsed");
  if (state_ != State::kActing && state_ != State::kReading) return;
  state_ = State::kLapsed;
  log_.warn("this replica stops acting", {{"member", lease_.name()}, {"why", why}});
}

void Member::rejoin_as_new(const char* why) {
  lapse(why);
  lease_.abandon();
}

void Member::read_world() {
  state_ = State::kReading;
  reading_since_ = loop_.now();
  handlers_.refresh([this, tenure = tenure_] {
    if (tenure == tenure_ && state_ == State::kReading) world_read();
  });
}

void Member::world_read() {
  state_ = State::kActing;
  log_.info("this replica acts again", {{"member", lease_.name()}});
  handlers_.changed();
  // The others plan without us until our Lease says that we are back.
  if (!lease_.steps_aside().empty()) beat_if_allowed();
}

std::string Member::reason_to_step_aside() const {
  Duration patience = requests_.config().timings.renew_deadline;
  if (state_ == State::kReading) {
    if (loop_.now() - reading_since_ < kReadingPatience) return "";
    patience = Duration::zero();
  } else if (state_ != State::kActing) {
    return lease_.steps_aside();
  }
  const std::string unseen = handlers_.unseen ? handlers_.unseen(patience) : "";
  return unseen.empty() && state_ == State::kReading ? "it reads everything again" : unseen;
}

void Member::leave(std::function<void()> left) {
  state_ = State::kLeaving;
  left_ = std::move(left);
  loop_.cancel(tick_timer_);
  loop_.cancel(lapse_timer_);
  handlers_.drop_all("released");
  if (!beating_) spawn(say_goodbye());
}

Task<void> Member::say_goodbye() {
  if (lease_.exists()) {
    auto task = lease_.remove();
    co_await task;
  }
  const auto left = std::exchange(left_, nullptr);
  if (left) loop_.post(left);
}

}  // namespace holdfast::membership
