#include "client/cache/informer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/cache/informer_state.h"

namespace holdfast::cache {

Informer::Informer(Dependencies dependencies, kube::Kind kind, std::vector<std::string> namespaces)
    : state_(std::make_shared<State>(std::move(dependencies), std::move(kind))) {
  state_->deps.log = state_->deps.log.with({{"kind", state_->kind.name}});
  if (namespaces.empty()) namespaces.emplace_back();
  ReflectorMachine::Config config;
  config.streaming_lists = state_->deps.streaming_lists;
  for (std::string& name : namespaces) {
    state_->reflectors.push_back(
        std::make_unique<State::Reflector>(std::move(name), config, state_->deps.random));
    State::Reflector& reflector = *state_->reflectors.back();
    state_->by_namespace[reflector.namespace_] = &reflector;
  }
  state_->live_changed_at = state_->deps.loop.now();
}

Informer::~Informer() { stop(); }

const kube::Kind& Informer::kind() const { return state_->kind; }
Store& Informer::store() { return state_->store; }

void Informer::on_change(std::function<void(const Change&)> handler) {
  state_->change_handlers.push_back(std::move(handler));
}

void Informer::on_progress(std::function<void()> handler) {
  state_->progress_handlers.push_back(std::move(handler));
}

void Informer::start() {
  assert(state_->deps.loop.on_loop());
  if (std::exchange(state_->running, true)) return;
  const SteadyTime now = state_->deps.loop.now();
  for (const auto& reflector : state_->reflectors) {
    reflector->last_life = now;
    state_->feed(*reflector, reflector->machine.start());
  }
}

void Informer::stop() {
  if (!std::exchange(state_->running, false)) return;
  state_->deps.loop.cancel(std::exchange(state_->selector_timer, 0));
  for (const auto& reflector : state_->reflectors) {
    reflector->machine.stop();
    reflector->fresh = false;
    state_->close_watch(*reflector);
    state_->deps.loop.cancel(std::exchange(reflector->timer, 0));
  }
  if (std::exchange(state_->live, false)) state_->live_changed_at = state_->deps.loop.now();
}

bool Informer::synced() const {
  return state_->all([](const State::Reflector& reflector) { return reflector.delivered; });
}

std::uint64_t Informer::version(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return reflector ? reflector->version : 0;
}

bool Informer::live() const { return state_->live; }

bool Informer::live(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return state_->running && reflector && reflector->machine.live();
}

SteadyTime Informer::live_changed_at() const { return state_->live_changed_at; }

std::uint64_t Informer::time_travels() const {
  std::uint64_t total = 0;
  for (const auto& reflector : state_->reflectors) total += reflector->machine.time_travels();
  return total;
}

void Informer::relist() {
  state_->feed_soon(
      [](State::Reflector& reflector, SteadyTime) { return reflector.machine.relist(); });
}

void Informer::refresh() {
  for (const auto& reflector : state_->reflectors) {
    reflector->fresh = false;
    reflector->to_refresh = true;
  }
  state_->feed_soon([](State::Reflector& reflector, SteadyTime now) {
    reflector.to_refresh = false;
    return reflector.machine.refresh(now);
  });
}

void Informer::on_leave(Leave leave) { state_->leave = std::move(leave); }

void Informer::keep(ObjectPtr object) {
  const std::string key = object->key();
  const ObjectPtr known = state_->store.stored(key);
  if (known && known->version >= object->version) return;
  state_->kept.insert(key);
  std::vector<Change> changes;
  state_->put(std::move(object), changes);
  state_->deliver(changes);
}

void Informer::drop(const std::string& key) {
  if (state_->kept.erase(key) == 0) return;
  ObjectPtr before = state_->store.erase(key);
  if (before) state_->deliver({{std::move(before), nullptr, false}});
}

bool Informer::is_kept(const std::string& key) const { return state_->kept.contains(key); }
bool Informer::is_unselected() const { return state_->is_unselected(); }

void Informer::widen(const Selector& selector) {
  state_->select(selector);
  ++state_->widened;
  if (!state_->running) return;
  for (const auto& reflector : state_->reflectors) {
    // The selector in use may be another one than that of the list.
    const bool has_all = reflector->listed == state_->selector();
    if (has_all) {
      reflector->widened = state_->widened;
    } else {
      state_->feed(*reflector, reflector->machine.widened());
    }
  }
}

std::vector<ObjectPtr> Informer::narrow(const Selector& selector,
                                        const std::function<bool(const ObjectPtr& object)>& keep) {
  std::vector<ObjectPtr> dropped;
  if (!state_->select(selector)) return dropped;
  state_->store.for_each([&](const ObjectPtr& object) {
    if (!keep(object)) dropped.push_back(object);
  });
  for (const ObjectPtr& object : dropped) {
    state_->kept.erase(object->key());
    state_->store.erase(object->key());
  }
  if (!state_->running) return dropped;
  for (const auto& reflector : state_->reflectors) {
    reflector->listed.reset();
    state_->feed(*reflector, reflector->machine.narrowed());
  }
  return dropped;
}

void Informer::report_gone(ObjectPtr dropped) {
  state_->deliver({{std::move(dropped), nullptr, false}});
}

std::uint64_t Informer::widened(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return reflector ? reflector->widened : 0;
}

bool Informer::widening(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return state_->running && reflector && reflector->widened < state_->widened &&
         reflector->machine.trouble().empty();
}

bool Informer::fresh() const {
  return state_->all([](const State::Reflector& reflector) { return reflector.fresh; });
}

bool Informer::fresh(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return reflector && reflector->fresh;
}

void Informer::watch_lags(const std::string& namespace_, Log::Fields seen) {
  state_->feed_soon([lagging = state_->find(namespace_), seen = std::move(seen)](
                        State::Reflector& reflector, SteadyTime now) {
    return &reflector == lagging ? reflector.machine.watch_lags(seen, now) : Actions();
  });
}

void Informer::server_answers() {
  state_->feed_soon([](State::Reflector& reflector, SteadyTime now) {
    return reflector.machine.server_answers(now);
  });
}

Duration Informer::quiet_for() const {
  if (!state_->running) return Duration::zero();
  const SteadyTime now = state_->deps.loop.now();
  Duration longest = Duration::zero();
  for (const auto& reflector : state_->reflectors) {
    if (!state_->set_aside(*reflector)) longest = std::max(longest, now - reflector->last_life);
  }
  return longest;
}

std::uint64_t Informer::undecodable() const {
  std::uint64_t total = 0;
  for (const auto& reflector : state_->reflectors) total += reflector->machine.undecodable();
  return total;
}

int Informer::closed() const {
  return static_cast<int>(std::count_if(state_->reflectors.begin(), state_->reflectors.end(),
                                        [](const auto& it) { return !it->machine.live(); }));
}

std::string Informer::trouble() const {
  std::string trouble;
  for (const auto& reflector : state_->reflectors) {
    const std::string& of_this = reflector->machine.trouble();
    if (of_this.empty()) continue;
    if (!state_->set_aside(*reflector)) return of_this;
    trouble = of_this;
  }
  return trouble;
}

std::string Informer::trouble(const std::string& namespace_) const {
  const State::Reflector* const reflector = state_->find(namespace_);
  return reflector ? reflector->machine.trouble() : "";
}

}  // namespace holdfast::cache
