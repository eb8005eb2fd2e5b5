#include "tests/bench/load/ends.h"

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "reconciler/names.h"
#include "reconciler/types.h"

namespace holdfast::bench {
namespace {

constexpr std::chrono::seconds kWatch{3600};

struct SeenJob : kube::Object {
  bool has_ended = false;
};

kube::Kind jobs() {
  kube::Kind kind;
  kind.name = kind.plural = reconciler::kJobPlural;
  kind.group_path = reconciler::kJobGroupPath;
  kind.decode = [](const JsonView& json) -> kube::ObjectPtr {
    auto job = std::make_shared<SeenJob>();
    if (!kube::decode_meta(json, *job)) return nullptr;
    const auto phase = reconciler::parse_phase(string_at(at(json, "status"), "phase"));
    job->has_ended = phase && reconciler::is_terminal(*phase);
    return job;
  };
  return kind;
}

}  // namespace

struct Ends::State : std::enable_shared_from_this<Ends::State> {
  State(kube::Client& the_client, std::string the_namespace)
      : client(the_client), namespace_(std::move(the_namespace)) {}

  kube::Client& client;
  const std::string namespace_;
  kube::Client::WatchId watch = 0;
  bool is_open = false;
  bool is_closed = false;
  std::string error;  // why there is no watch
  Callback<bool>::Done opened;
  std::set<std::string> ended;  // that nobody has waited for yet
  std::map<std::string, Callback<bool>::Done> waiting;

  void start();
  void has_ended(const std::string& name);
  void watch_opened(bool is_so) {
    is_open = is_so;
    if (const auto done = std::exchange(opened, nullptr)) done(is_so);
  }
  void watch_ended(const std::optional<Error>& why);
};

// Without a version, so it begins with all jobs as they are.
void Ends::State::start() {
  const auto self = shared_from_this();
  kube::Client::WatchHandlers handlers;
  handlers.on_open = [self] { self->watch_opened(true); };
  handlers.on_events = [self](std::vector<kube::WatchEvent>&& events) {
    for (const kube::WatchEvent& event : events) {
      if (!event.object) continue;
      if (static_cast<const SeenJob&>(*event.object).has_ended) self->has_ended(event.object->name);
    }
  };
  handlers.on_end = [self](std::optional<Error> why) { self->watch_ended(why); };
  watch = client.watch(jobs(), namespace_, "", kWatch, std::move(handlers));
}

void Ends::State::has_ended(const std::string& name) {
  const auto found = waiting.find(name);
  if (found == waiting.end()) {
    ended.insert(name);
    return;
  }
  const auto done = std::move(found->second);
  waiting.erase(found);
  done(true);
}

// The API server ends watches of a resource whose definition is new. Then a watch that was open is
// opened again.
void Ends::State::watch_ended(const std::optional<Error>& why) {
  if (std::exchange(is_open, false) && !is_closed) return start();
  error = why ? why->message : "the watch of the jobs has ended";
  watch_opened(false);
  for (const auto& [name, done] : std::exchange(waiting, {})) done(false);
}

Ends::Ends(kube::Client& client, std::string namespace_)
    : state_(std::make_shared<State>(client, std::move(namespace_))) {}

Task<bool> Ends::open() {
  const std::shared_ptr<State> state = state_;
  Callback<bool> opened([&](Callback<bool>::Done done) {
    state->opened = std::move(done);
    state->start();
  });
  const bool is_open = co_await opened;
  co_return is_open;
}

Task<bool> Ends::of(std::string name) {
  const std::shared_ptr<State> state = state_;
  if (state->ended.erase(name) > 0) co_return true;
  if (!state->error.empty()) co_return false;
  Callback<bool> end([&](Callback<bool>::Done done) { state->waiting[name] = std::move(done); });
  const bool has_ended = co_await end;
  co_return has_ended;
}

const std::string& Ends::error() const { return state_->error; }

void Ends::close() {
  state_->is_closed = true;
  state_->client.cancel_watch(state_->watch);
}

}  // namespace holdfast::bench
