#include "client/cache/informer.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <utility>

#include "client/cache/reflector_machine.h"
#include "client/kube/packed.h"

namespace holdfast::cache {
namespace {

// A page of 500 pods is some MB; a consistent list of a busy server takes its time.
constexpr Duration kListTimeout = std::chrono::seconds(60);

kube::Kind look_kind(const kube::Kind& kind) {
  kube::Kind look = kind;
  // Without the selectors, because any object will do. If few objects matched, the server would
  // have to read them all.
  look.label_selector.clear();
  look.field_selector.clear();
  look.metadata_only = true;
  look.decode = [](const JsonView&) { return ObjectPtr(); };
  return look;
}

kube::Kind metadata_kind(const kube::Kind& kind) {
  kube::Kind metadata = kind;
  metadata.metadata_only = true;
  metadata.decode = [](const JsonView& json) -> ObjectPtr {
    const auto object = std::make_shared<kube::Object>();
    return kube::decode_meta(json, *object) ? object : nullptr;
  };
  return metadata;
}

}  // namespace

// Answers and timers may come after the informer's end. They hold the state, which knows that it
// was stopped.
struct Informer::State : std::enable_shared_from_this<Informer::State> {
  struct Reflector {
    Reflector(std::string name, ReflectorMachine::Config config, Random& random)
        : namespace_(std::move(name)), machine(config, random) {}
    const std::string namespace_;
    ReflectorMachine machine;
    kube::Client::WatchId watch = 0;
    TimerId timer = 0;
    std::uint64_t version = 0;  // of the store, at most one turn behind the machine
    std::uint64_t widened = 0;  // how often, when the list in the store began
    bool delivered = false;     // the first list
    bool live = false;          // as last reported
    bool fresh = false;         // likewise
    bool to_refresh = false;    // the machine is told in a turn of its own
    SteadyTime last_life{};
  };

  State(Dependencies dependencies, kube::Kind watched)
      : deps(std::move(dependencies)),
        kind(std::move(watched)),
        look(look_kind(kind)),
        metadata(metadata_kind(kind)) {}

  bool set_aside(const Reflector& reflector) const {
    return !reflector.machine.live() &&
           std::any_of(reflectors.begin(), reflectors.end(),
                       [](const auto& other) { return other->machine.live(); });
  }
  // True if the condition is true for every reflector that is not set aside.
  template <typename Predicate>
  bool all(Predicate predicate) const {
    return std::all_of(reflectors.begin(), reflectors.end(), [&](const auto& reflector) {
      return set_aside(*reflector) || predicate(*reflector);
    });
  }
  // Null: the namespace is not watched.
  Reflector* find(const std::string& namespace_) const {
    const auto of_all = by_namespace.find("");
    const auto found = of_all != by_namespace.end() ? of_all : by_namespace.find(namespace_);
    return found == by_namespace.end() ? nullptr : found->second;
  }

  void feed(Reflector& reflector, Actions actions);
  // Feeds `input` to each reflector, in a later turn, because a handler may call it.
  template <typename Input>
  void feed_soon(Input input) {
    deps.loop.post([weak = weak_from_this(), input = std::move(input)] {
      const std::shared_ptr<State> state = weak.lock();
      if (!state) return;
      for (const auto& reflector : state->reflectors) {
        if (!state->running) return;
        state->feed(*reflector, input(*reflector, state->deps.loop.now()));
      }
    });
  }
  Actions carry_out(Reflector& reflector, Action& action, std::vector<Change>& changes);
  void deliver(const std::vector<Change>& changes);
  void open_watch(Reflector& reflector, const action::Watch& watch);
  void close_watch(Reflector& reflector);
  void arm_timer(Reflector& reflector, const action::ArmTimer& timer);
  const kube::Kind& kind_of(action::Wanted wanted) const;
  void select(const std::string& label_selector);
  static Task<void> run_list(std::shared_ptr<State> state, Reflector& reflector,
                             action::List action);

  Dependencies deps;
  kube::Kind kind;
  const kube::Kind look;
  kube::Kind metadata;
  std::uint64_t widened = 0;
  Store store;
  std::vector<std::unique_ptr<Reflector>> reflectors;
  std::unordered_map<std::string, Reflector*> by_namespace;
  std::vector<std::function<void(const Change&)>> change_handlers;
  std::vector<std::function<void()>> progress_handlers;
  bool running = false;
  bool live = false;
  SteadyTime live_changed_at{};
};

// ---- Carrying out what a machine says.

void Informer::State::feed(Reflector& reflector, Actions actions) {
  const std::uint64_t version = reflector.version;
  std::vector<Change> changes;
  // Carrying out one action may feed the machine, which then adds more.
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Action action = std::move(actions[i]);
    Actions more = carry_out(reflector, action, changes);
    actions.insert(actions.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  }

  const bool live_now = running && all([](const Reflector& r) { return r.machine.live(); });
  const bool live_of_it = reflector.machine.live();
  const bool fresh_of_it = reflector.machine.fresh() && !reflector.to_refresh;
  bool progress = reflector.version != version || !changes.empty();
  if (std::exchange(reflector.live, live_of_it) != live_of_it) progress = true;
  if (std::exchange(reflector.fresh, fresh_of_it) != fresh_of_it) progress = true;
  if (live_now != live) {
    live = live_now;
    live_changed_at = deps.loop.now();
  }
  // Handlers run after the whole batch: none sees a part of it.
  deliver(changes);
  if (!reflector.delivered && reflector.machine.synced()) {
    reflector.delivered = true;
    progress = true;
  }
  if (!progress) return;
  for (const auto& handler : progress_handlers) {
    if (running) handler();
  }
}

void Informer::State::deliver(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const Change whole{kube::whole(change.before), kube::whole(change.after), change.initial};
    for (const auto& handler : change_handlers) {
      if (running) handler(whole);
    }
  }
}

Actions Informer::State::carry_out(Reflector& reflector, Action& action,
                                   std::vector<Change>& changes) {
  if (auto* list = std::get_if<action::List>(&action)) {
    spawn(run_list(shared_from_this(), reflector, std::move(*list)));
  } else if (auto* compare = std::get_if<action::Compare>(&action)) {
    const std::size_t behind =
        count_behind(store, reflector.namespace_, reflector.version, *compare->metadata);
    return reflector.machine.compared(compare->epoch, behind, deps.loop.now());
  } else if (auto* watch = std::get_if<action::Watch>(&action)) {
    open_watch(reflector, *watch);
  } else if (std::get_if<action::CloseWatch>(&action)) {
    close_watch(reflector);
  } else if (auto* timer = std::get_if<action::ArmTimer>(&action)) {
    arm_timer(reflector, *timer);
  } else if (auto* swap = std::get_if<action::Replace>(&action)) {
    const std::size_t went_back =
        replace(store, {reflector.namespace_, std::move(swap->items), swap->trust}, changes);
    if (went_back > 0 && swap->trust == Trust::kConsistent) reflector.machine.objects_went_back();
    reflector.version = swap->version;
    // A list under way begins again when the selector changes.
    reflector.widened = widened;
  } else if (auto* apply = std::get_if<action::Apply>(&action)) {
    for (const kube::WatchEvent& event : apply->events) apply_event(store, event, changes);
    reflector.version = apply->version;
  } else if (auto* note = std::get_if<action::Note>(&action)) {
    if (!reflector.namespace_.empty()) {
      note->fields.emplace_back("namespace", reflector.namespace_);
    }
    if (note->level == LogLevel::kWarn) {
      deps.log.warn(note->message, note->fields);
    } else {
      deps.log.info(note->message, note->fields);
    }
  }
  return {};
}

// The selector of requests to come. Lists and watches under way are replaced.
void Informer::State::select(const std::string& label_selector) {
  kind.label_selector = label_selector;
  metadata.label_selector = label_selector;
}

const kube::Kind& Informer::State::kind_of(action::Wanted wanted) const {
  if (wanted == action::Wanted::kObjects) return kind;
  return wanted == action::Wanted::kVersion ? look : metadata;
}

Task<void> Informer::State::run_list(std::shared_ptr<State> state, Reflector& reflector,
                                     action::List action) {
  kube::CallOptions options;
  options.timeout = kListTimeout;
  // A copy, because the selector may change meanwhile.
  const kube::Kind wanted = state->kind_of(action.wanted);
  auto call = state->deps.client.list(wanted, reflector.namespace_, action.query, options);
  auto page = co_await call;
  if (!state->running) co_return;
  const SteadyTime now = state->deps.loop.now();
  if (page.ok()) {
    reflector.last_life = now;
    if (action.wanted == action::Wanted::kObjects &&
        reflector.machine.versions_count(page->version)) {
      for (ObjectPtr& object : page->items) share(state->store, object);
    }
    state->feed(reflector, reflector.machine.page(action.epoch, std::move(*page), now));
  } else {
    state->feed(reflector, reflector.machine.list_failed(action.epoch, page.error(), now));
  }
}

void Informer::State::open_watch(Reflector& reflector, const action::Watch& watch) {
  close_watch(reflector);
  const Epoch epoch = watch.epoch;
  // Runs `input` on the machine, unless the informer was stopped or is gone.
  const auto with_state = [weak = weak_from_this(), &reflector](auto input) {
    const std::shared_ptr<State> state = weak.lock();
    if (!state || !state->running) return;
    const SteadyTime now = state->deps.loop.now();
    state->feed(reflector, input(reflector.machine, now));
  };
  kube::Client::WatchHandlers handlers;
  handlers.on_open = [with_state, epoch, &reflector] {
    with_state([&](ReflectorMachine& machine, SteadyTime now) {
      reflector.last_life = now;
      return machine.watch_opened(epoch, now);
    });
  };
  handlers.on_events = [with_state, epoch, &reflector,
                        &store = store](std::vector<kube::WatchEvent>&& events) {
    with_state([&](ReflectorMachine& machine, SteadyTime now) {
      reflector.last_life = now;
      if (!machine.live() && machine.versions_count(machine.version())) {
        for (kube::WatchEvent& event : events) share(store, event.object);
      }
      return machine.events(epoch, std::move(events), now);
    });
  };
  handlers.on_end = [with_state, epoch](std::optional<Error> error) {
    with_state([&](ReflectorMachine& machine, SteadyTime now) {
      return machine.watch_ended(epoch, error, now);
    });
  };
  reflector.watch = deps.client.watch(kind, reflector.namespace_, watch.query, watch.timeout,
                                      std::move(handlers));
}

void Informer::State::close_watch(Reflector& reflector) {
  if (reflector.watch != 0) deps.client.cancel_watch(std::exchange(reflector.watch, 0));
}

void Informer::State::arm_timer(Reflector& reflector, const action::ArmTimer& timer) {
  deps.loop.cancel(reflector.timer);
  reflector.timer =
      deps.loop.call_after(timer.delay, [weak = weak_from_this(), &reflector, epoch = timer.epoch] {
        const std::shared_ptr<State> state = weak.lock();
        if (!state || !state->running) return;
        reflector.timer = 0;
        state->feed(reflector, reflector.machine.timer(epoch, state->deps.loop.now()));
      });
}

// ---- The informer.

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
    state_->feed(*reflector, reflector->machine.start(now));
  }
}

void Informer::stop() {
  if (!std::exchange(state_->running, false)) return;
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
      [](State::Reflector& reflector, SteadyTime now) { return reflector.machine.relist(now); });
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

void Informer::widen(const std::string& label_selector) {
  state_->select(label_selector);
  ++state_->widened;
  if (!state_->running) return;
  const SteadyTime now = state_->deps.loop.now();
  for (const auto& reflector : state_->reflectors) {
    state_->feed(*reflector, reflector->machine.widened(now));
  }
}

void Informer::narrow(const std::string& label_selector,
                      const std::function<bool(const ObjectPtr& object)>& keep) {
  state_->select(label_selector);
  std::vector<std::string> dropped;
  state_->store.for_each([&](const ObjectPtr& object) {
    if (!keep(object)) dropped.push_back(object->key());
  });
  for (const std::string& key : dropped) state_->store.erase(key);
  if (!state_->running) return;
  const SteadyTime now = state_->deps.loop.now();
  for (const auto& reflector : state_->reflectors) {
    state_->feed(*reflector, reflector->machine.narrowed(now));
  }
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
