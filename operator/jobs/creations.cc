#include "operator/jobs/creations.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/work/fair_share.h"

namespace holdfast::controller {

struct Creations::State : std::enable_shared_from_this<State> {
  State(Loop& the_loop, int each, std::function<void(const std::string&)> on_turn)
      : loop(the_loop), share(each), turn(std::move(on_turn)) {}

  Slot begin(const std::string& tenant);
  void end(const std::string& tenant);
  void give_turns_soon();
  void give_turns();
  bool give_turn(const std::string& tenant);

  Loop& loop;
  FairShare share;  // slots that are held or promised
  const std::function<void(const std::string&)> turn;
  struct Line {
    std::list<std::string> keys;
    SteadyTime last_turn{};  // or the start of the line
  };
  std::unordered_map<std::string, Line> waiting;      // by tenant
  std::unordered_map<std::string, SteadyTime> waits;  // keys, and since when
  std::list<std::string> tenants;                     // with waiting keys, in turn
  std::unordered_map<std::string, Slot> promised;     // to keys whose turn it is
  bool giving = false;
  bool stopped = false;
  std::function<void()> on_idle;
};

Creations::Slot Creations::State::begin(const std::string& tenant) {
  share.begin(tenant);
  return Slot(nullptr, [weak = weak_from_this(), tenant](void*) {
    if (const std::shared_ptr<State> state = weak.lock()) state->end(tenant);
  });
}

void Creations::State::end(const std::string& tenant) {
  share.end(tenant);
  if (share.in_use() == 0 && on_idle) loop.post(std::exchange(on_idle, nullptr));
  give_turns_soon();
}

void Creations::State::give_turns_soon() {
  if (stopped || tenants.empty() || std::exchange(giving, true)) return;
  loop.post([weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->giving = false;
    state->give_turns();
  });
}

void Creations::State::give_turns() {
  for (auto tenant = tenants.begin(); tenant != tenants.end() && !stopped;) {
    if (!share.admits(*tenant)) {
      ++tenant;
      continue;
    }
    const bool more = give_turn(*tenant);
    if (more) tenants.push_back(*tenant);
    tenant = tenants.erase(tenant);
  }
}

// True if the tenant has more waiting keys.
bool Creations::State::give_turn(const std::string& tenant) {
  Line& line = waiting.at(tenant);
  line.last_turn = loop.now();
  std::list<std::string>& keys = line.keys;
  const std::string key = std::move(keys.front());
  keys.pop_front();
  waits.erase(key);
  promised[key] = begin(tenant);
  turn(key);
  if (!keys.empty()) return true;
  waiting.erase(tenant);
  return false;
}

Creations::Creations(Loop& loop, int each, std::function<void(const std::string&)> turn)
    : state_(std::make_shared<State>(loop, each, std::move(turn))) {}

Creations::~Creations() { stop(nullptr); }

bool Creations::admits(const std::string& key) const {
  if (state_->promised.count(key) != 0) return true;
  const std::string tenant = tenant_of(key);
  return !state_->stopped && state_->waiting.count(tenant) == 0 && state_->share.admits(tenant);
}

Creations::Slot Creations::take(const std::string& key) {
  const auto promised = state_->promised.find(key);
  if (promised == state_->promised.end()) return state_->begin(tenant_of(key));
  Slot slot = std::move(promised->second);
  state_->promised.erase(promised);
  return slot;
}

void Creations::wait(const std::string& key) {
  const SteadyTime now = state_->loop.now();
  if (state_->stopped || !state_->waits.emplace(key, now).second) return;
  const std::string tenant = tenant_of(key);
  const auto [found, added] = state_->waiting.try_emplace(tenant);
  if (added) {
    state_->tenants.push_back(tenant);
    found->second.last_turn = now;
  }
  found->second.keys.push_back(key);
  state_->give_turns_soon();
}

std::optional<reconciler::TurnWait> Creations::waits(const std::string& key) const {
  const auto since = state_->waits.find(key);
  if (since == state_->waits.end()) return std::nullopt;
  const SteadyTime now = state_->loop.now();
  return reconciler::TurnWait{now - since->second,
                              now - state_->waiting.at(tenant_of(key)).last_turn};
}

void Creations::looked_at(const std::string& key) {
  const auto promised = state_->promised.find(key);
  if (promised == state_->promised.end()) return;
  const Slot unused = std::move(promised->second);
  state_->promised.erase(promised);
}

void Creations::stop(std::function<void()> on_idle) {
  State& state = *state_;
  state.stopped = true;
  state.tenants.clear();
  state.waiting.clear();
  state.waits.clear();
  const auto unused = std::exchange(state.promised, {});
  state.on_idle = std::move(on_idle);
  state.loop.post([weak = std::weak_ptr<State>(state_)] {
    const std::shared_ptr<State> still = weak.lock();
    if (still && still->share.in_use() == 0 && still->on_idle) {
      std::exchange(still->on_idle, nullptr)();
    }
  });
}

}  // namespace holdfast::controller
