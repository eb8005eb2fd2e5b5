// An informer's state: its reflectors, and how it carries out what their machines say. Only the
// informer's own .cc files include it. Loop only.
//
// Answers and timers may come after the informer's end. They hold the state, which knows that it
// was stopped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/cache/informer.h"
#include "client/cache/reflector_machine.h"
#include "core/task.h"

namespace holdfast::cache {

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
    // The store has all that this selects; none: no list has come since the selector changed.
    std::optional<Selector> listed;
    bool delivered = false;   // the first list
    bool live = false;        // as last reported
    bool fresh = false;       // likewise
    bool to_refresh = false;  // the machine is notified in a turn of its own
    SteadyTime last_life{};
  };

  State(Dependencies dependencies, kube::Kind watched);

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
  // Of requests to come.
  Selector selector() const { return {kind.label_selector, kind.field_selector}; }
  // False: requests select as before.
  bool select(const Selector& selector);
  // The selector has changed. Lists under way begin again. `but`: this one lists by itself.
  void list_anew(const Reflector* but = nullptr);
  bool is_unselected() const { return !field_selector.empty() && kind.field_selector.empty(); }
  // The server says that this object is gone. What the store has of it then; null: nothing.
  ObjectPtr stays(const ObjectPtr& stored, std::uint64_t version);
  void apply(const kube::WatchEvent& event, std::vector<Change>& changes);
  void put(ObjectPtr object, std::vector<Change>& changes);
  // True: the server does not know a field that selects, and from now on all is wanted.
  bool unselect(const Error& error);
  void try_selector_later();
  static Task<void> try_selector(std::shared_ptr<State> state);
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
  Leave leave;
  std::unordered_set<std::string> kept;  // keys
  std::size_t selector_tries = 0;
  std::string field_selector;  // as asked for; `kind` has none while it is not known
  TimerId selector_timer = 0;
  bool running = false;
  bool live = false;
  SteadyTime live_changed_at{};
};

}  // namespace holdfast::cache
