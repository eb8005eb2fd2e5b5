#include "operator/observe/shared_reads.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::observe {
namespace {

constexpr std::chrono::seconds kPatience{1};

}  // namespace

struct SharedReads::State : std::enable_shared_from_this<State> {
  using Done = Callback<Result<>>::Done;
  struct Subject {
    std::vector<Done> waiting;
    SteadyTime by = SteadyTime::max();  // the earliest of the waiting callers
    int under_way = 0;
    SteadyTime last_sent{};
    TimerId timer = 0;  // until the next read is sent
  };

  State(Loop& the_loop, Read function) : loop(the_loop), read(std::move(function)) {}

  void send_next(const std::string& name);
  void send_later(const std::string& name, Duration delay);
  static Task<void> run(std::shared_ptr<State> state, std::string name, SteadyTime by,
                        std::vector<Done> asked);

  Loop& loop;
  const Read read;
  std::unordered_map<std::string, Subject> subjects;
};

SharedReads::SharedReads(Loop& loop, Read read)
    : state_(std::make_shared<State>(loop, std::move(read))) {}

SharedReads::~SharedReads() {
  for (auto& [name, subject] : state_->subjects) state_->loop.cancel(subject.timer);
}

Task<Result<>> SharedReads::ask(std::string name, SteadyTime by) {
  Callback<Result<>> answered([&](State::Done done) {
    State::Subject& subject = state_->subjects[name];
    subject.waiting.push_back(std::move(done));
    subject.by = std::min(subject.by, by);
    // Callers of the same turn share the read.
    if (subject.timer == 0) state_->send_later(name, Duration::zero());
  });
  const Result<> status = co_await answered;
  co_return status;
}

void SharedReads::State::send_later(const std::string& name, Duration delay) {
  subjects.at(name).timer = loop.call_after(delay, [weak = weak_from_this(), name] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->subjects.at(name).timer = 0;
    state->send_next(name);
  });
}

void SharedReads::State::send_next(const std::string& name) {
  Subject& subject = subjects.at(name);
  const Duration age = loop.now() - subject.last_sent;
  if (subject.under_way > 0 && age < kPatience) return send_later(name, kPatience - age);
  ++subject.under_way;
  subject.last_sent = loop.now();
  spawn(run(shared_from_this(), name, std::exchange(subject.by, SteadyTime::max()),
            std::exchange(subject.waiting, {})));
}

Task<void> SharedReads::State::run(std::shared_ptr<State> state, std::string name, SteadyTime by,
                                   std::vector<Done> asked) {
  auto task = state->read(name, by);
  const Result<> status = co_await task;
  Subject& subject = state->subjects.at(name);
  --subject.under_way;
  state->loop.cancel(std::exchange(subject.timer, 0));
  if (!subject.waiting.empty()) {
    state->send_next(name);
  } else if (subject.under_way == 0) {
    state->subjects.erase(name);
  }
  // Last, because a caller with its answer may ask again.
  for (const Done& done : asked) done(status);
}

}  // namespace holdfast::observe
