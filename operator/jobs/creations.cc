#include "operator/jobs/creations.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/controller/fair_share.h"
#include "client/kube/object.h"

namespace holdfast::jobs {

struct Creations::State : std::enable_shared_from_this<State> {
  State(Loop& the_loop, int each, std::function<void(const std::string&)> on_turn)
      : loop(the_loop), share(each), turn(std::move(on_turn)) {}

  Slot begin(const std::string& tenant);
  void end(const std::string& tenant);
  void give_turns_soon();
  void give_turns();
  bool give_turn(const std::string& tenant);

  Loop& loop;
  controller::FairShare share;  // slots that are held or promised
  const std::function<void(const std::string&)> turn;
  struct Entry {
    std::string key;
    Ticket ticket = 0;
    std::function<void(Slot)> begin = nullptr;  // null: a job waits for its turn
  };
  struct Line {
    std::list<Entry> entries;
    SteadyTime last_turn{};  // or the start of the line
  };
  void add(Entry entry);
  void drop(std::function<void(Slot)> begin);
  std::unordered_map<std::string, Line> waiting;      // by tenant
  std::unordered_map<std::string, SteadyTime> waits;  // keys, and since when
  std::list<std::string> tenants;                     // with waiting keys, in turn
  std::unordered_map<std::string, Slot> promised;     // to keys whose turn it is
  Ticket next_ticket = 0;
  bool giving = false;
  bool stopped = false;
  std::function<void()> on_idle;
};

Creations::Slot Creations::State::begin(const std::string& tenant) {
  share.begin(tenant);
  return Slot(this, [weak = weak_from_this(), tenant](void*) {
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

// True if the tenant has more waiting entries.
bool Creations::State::give_turn(const std::string& tenant) {
  Line& line = waiting.at(tenant);
  line.last_turn = loop.now();
  const Entry entry = std::move(line.entries.front());
  line.entries.pop_front();
  const bool more = !line.entries.empty();
  if (!more) waiting.erase(tenant);
  if (entry.begin) {
    entry.begin(begin(tenant));
    return more;
  }
  waits.erase(entry.key);
  promised[entry.key] = begin(tenant);
  turn(entry.key);
  return more;
}

void Creations::State::add(Entry entry) {
  const std::string tenant = kube::namespace_of(entry.key);
  const auto [found, added] = waiting.try_emplace(tenant);
  if (added) {
    tenants.push_back(tenant);
    found->second.last_turn = loop.now();
  }
  found->second.entries.push_back(std::move(entry));
  give_turns_soon();
}

void Creations::State::drop(std::function<void(Slot)> begin) {
  if (begin) loop.post([begin = std::move(begin)] { begin(nullptr); });
}

Creations::Creations(Loop& loop, int each, std::function<void(const std::string&)> turn)
    : state_(std::make_shared<State>(loop, each, std::move(turn))) {}

Creations::~Creations() { stop(nullptr); }

bool Creations::admits(const std::string& key) const {
  if (state_->promised.count(key) != 0) return true;
  const std::string tenant = kube::namespace_of(key);
  return !state_->stopped && state_->waiting.count(tenant) == 0 && state_->share.admits(tenant);
}

Creations::Slot Creations::take(const std::string& key) {
  const auto promised = state_->promised.find(key);
  if (promised == state_->promised.end()) return state_->begin(kube::namespace_of(key));
  Slot slot = std::move(promised->second);
  state_->promised.erase(promised);
  return slot;
}

void Creations::wait(const std::string& key) {
  if (state_->stopped || !state_->waits.emplace(key, state_->loop.now()).second) return;
  state_->add({key});
}

Creations::Ticket Creations::queue(const std::string& key, std::function<void(Slot)> begin) {
  const Ticket ticket = ++state_->next_ticket;
  if (state_->stopped) {
    state_->drop(std::move(begin));
  } else {
    state_->add({key, ticket, std::move(begin)});
  }
  return ticket;
}

void Creations::withdraw(Ticket ticket) {
  for (auto& [tenant, line] : state_->waiting) {
    const auto entry = std::find_if(line.entries.begin(), line.entries.end(),
                                    [&](const auto& one) { return one.ticket == ticket; });
    if (entry == line.entries.end()) continue;
    state_->drop(std::move(entry->begin));
    line.entries.erase(entry);
    if (!line.entries.empty()) return;
    state_->tenants.remove(tenant);
    state_->waiting.erase(tenant);
    return;
  }
}

std::optional<reconciler::TurnWait> Creations::waits(const std::string& key) const {
  const auto since = state_->waits.find(key);
  if (since == state_->waits.end()) return std::nullopt;
  const SteadyTime now = state_->loop.now();
  return reconciler::TurnWait{now - since->second,
                              now - state_->waiting.at(kube::namespace_of(key)).last_turn};
}

bool Creations::has_turn(const std::string& key) const { return state_->promised.count(key) != 0; }

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
  for (auto& [tenant, line] : std::exchange(state.waiting, {})) {
    for (auto& entry : line.entries) state.drop(std::move(entry.begin));
  }
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

}  // namespace holdfast::jobs
