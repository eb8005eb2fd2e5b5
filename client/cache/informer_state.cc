#include "client/cache/informer_state.h"

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

Informer::State::State(Dependencies dependencies, kube::Kind watched)
    : deps(std::move(dependencies)),
      kind(std::move(watched)),
      look(look_kind(kind)),
      metadata(metadata_kind(kind)) {}

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
        count_behind(store, reflector.namespace_, reflector.version, *compare->metadata, kept);
    return reflector.machine.compared(compare->epoch, behind, deps.loop.now());
  } else if (auto* watch = std::get_if<action::Watch>(&action)) {
    open_watch(reflector, *watch);
  } else if (std::get_if<action::CloseWatch>(&action)) {
    close_watch(reflector);
  } else if (auto* timer = std::get_if<action::ArmTimer>(&action)) {
    arm_timer(reflector, *timer);
  } else if (auto* swap = std::get_if<action::Replace>(&action)) {
    for (const ObjectPtr& item : swap->items) kept.erase(item->key());
    const bool is_set_back = swap->trust == Trust::kSetBack;
    const Stays left = [&](const ObjectPtr& stored) {
      const bool is_known = !is_set_back && kept.contains(stored->key());
      return is_known ? stored : stays(stored, /*version=*/0);
    };
    const std::size_t went_back =
        replace(store, {reflector.namespace_, std::move(swap->items), swap->trust}, changes, left);
    if (went_back > 0 && swap->trust == Trust::kConsistent) reflector.machine.objects_went_back();
    reflector.version = swap->version;
    // A list under way begins again when the selector changes.
    reflector.widened = widened;
    reflector.listed = selector();
  } else if (auto* apply = std::get_if<action::Apply>(&action)) {
    for (const kube::WatchEvent& event : apply->events) this->apply(event, changes);
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

ObjectPtr Informer::State::stays(const ObjectPtr& stored, std::uint64_t version) {
  // Without the selector a deletion is one.
  if (!leave || !stored || kind.field_selector.empty()) return nullptr;
  ObjectPtr whole = kube::whole(stored);
  ObjectPtr left = leave(whole, version);
  if (!left) {
    kept.erase(stored->key());
    return nullptr;
  }
  kept.insert(stored->key());
  return left == whole ? stored : left;
}

void Informer::State::apply(const kube::WatchEvent& event, std::vector<Change>& changes) {
  if (!event.object) return;
  const std::string key = event.object->key();
  const ObjectPtr known = store.stored(key);
  const bool goes = event.type == kube::WatchEventType::kDeleted && known &&
                    known->uid == event.object->uid && event.object->version >= known->version;
  if (goes) {
    ObjectPtr left = stays(known, event.object->version);
    if (left && left != known) put(std::move(left), changes);
    if (store.stored(key) && kept.contains(key)) return;
  } else if (event.type != kube::WatchEventType::kDeleted) {
    // What was read may be what the watch says now.
    const bool is_older = known && event.object->version < known->version;
    if (!is_older) kept.erase(key);
  }
  apply_event(store, event, changes);
}

void Informer::State::put(ObjectPtr object, std::vector<Change>& changes) {
  kube::WatchEvent event;
  event.type = kube::WatchEventType::kModified;
  event.version = object->version;
  event.object = std::move(object);
  apply_event(store, event, changes);
}

bool Informer::State::unselect(const Error& error) {
  constexpr std::string_view kUnknown = "field label not supported";
  const bool is_unknown = error.message.find(kUnknown) != std::string::npos;
  if (!running || kind.field_selector.empty() || !is_unknown) return false;
  field_selector = std::exchange(kind.field_selector, "");
  metadata.field_selector.clear();
  deps.log.warn("the API server cannot select by a field of this version; everything is watched",
                {{"selector", field_selector}, {"error", error.message}});
  try_selector_later();
  return true;
}

void Informer::State::try_selector_later() {
  constexpr std::chrono::minutes kAgain{1};
  selector_timer = deps.loop.call_after(kAgain, [weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state || !state->running) return;
    state->selector_timer = 0;
    spawn(try_selector(state));
  });
}

Task<void> Informer::State::try_selector(std::shared_ptr<State> state) {
  kube::Kind wanted = state->metadata;
  wanted.field_selector = state->field_selector;
  // The first namespace may be gone.
  const std::size_t place = state->selector_tries++ % state->reflectors.size();
  auto call = state->deps.client.list(wanted, state->reflectors[place]->namespace_, "limit=1");
  const auto page = co_await call;
  if (!state->running) co_return;
  if (!page.ok()) co_return state->try_selector_later();
  state->kind.field_selector = state->metadata.field_selector = state->field_selector;
  state->list_anew();
}

void Informer::State::list_anew(const Reflector* but) {
  for (const auto& reflector : reflectors) {
    if (reflector.get() != but) feed(*reflector, reflector->machine.widened());
  }
}

// The selector of requests to come. Lists and watches under way are replaced.
bool Informer::State::select(const Selector& selector) {
  const Selector before = this->selector();
  kind.label_selector = metadata.label_selector = selector.labels;
  if (is_unselected()) {
    field_selector = selector.fields;  // for the next try
  } else {
    kind.field_selector = metadata.field_selector = selector.fields;
  }
  return this->selector() != before;
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
    const bool selects_no_more = state->unselect(page.error());
    state->feed(reflector, reflector.machine.list_failed(action.epoch, page.error(), now));
    if (selects_no_more) state->list_anew(&reflector);
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
  handlers.on_end = [with_state, epoch, weak = weak_from_this()](std::optional<Error> error) {
    const std::shared_ptr<State> state = weak.lock();
    const bool selects_no_more = state && error && state->unselect(*error);
    with_state([&](ReflectorMachine& machine, SteadyTime now) {
      return machine.watch_ended(epoch, error, now);
    });
    if (selects_no_more) state->list_anew();
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

}  // namespace holdfast::cache
