// The watches of Client.
#include <algorithm>
#include <utility>

#include "client/kube/client_state.h"
#include "client/kube/collection_request.h"
#include "client/kube/errors.h"

namespace holdfast::kube {
namespace {

// The longest silence of a watch, for any server, so that none can hold a dead watch forever.
constexpr std::chrono::seconds kIdleGrace{5};
// Every watch asks for bookmarks, which come once a minute (the watch cache's bookmarkFrequency). A
// dead connection is found after two and a half bookmark periods.
constexpr std::chrono::seconds kMostSilent{150};

}  // namespace

void Client::State::start_watch(WatchId id) {
  deps.credentials.authorization([weak = weak_from_this(), id](Result<std::string> credentials) {
    const auto self = weak.lock();
    if (!self || self->watches.count(id) == 0) return;
    if (!credentials.ok()) return self->watch_ended(id, credentials.error());
    self->open_watch(id, *credentials);
  });
}

void Client::State::open_watch(WatchId id, const std::string& authorization) {
  const std::shared_ptr<Watch> watch = watches.at(id);
  http::StreamRequest request = watch->request;
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  const SteadyTime started = deps.loop.now();
  const auto weak = weak_from_this();
  http::StreamHandlers handlers;
  handlers.on_open = [weak, id, started](const http::Response& response) {
    const auto self = weak.lock();
    if (!self) return;
    self->observe("WATCH", &response, started);
    self->watch_opened(id, response);
  };
  handlers.on_lines = [weak, id](std::vector<std::any>&& lines) {
    const auto self = weak.lock();
    const auto found = self ? self->watches.find(id) : decltype(self->watches.find(id)){};
    if (!self || found == self->watches.end()) return;
    std::vector<WatchEvent> events;
    events.reserve(lines.size());
    for (std::any& line : lines) events.push_back(std::any_cast<WatchEvent&&>(std::move(line)));
    const auto handler = found->second->handlers.on_events;
    handler(std::move(events));
  };
  handlers.on_end = [weak, id](std::optional<Error> error) {
    const auto self = weak.lock();
    if (self) self->watch_ended(id, std::move(error));
  };
  watch->refused.reset();
  watch->call = deps.transport.open(std::move(request), std::move(handlers));
}

void Client::State::watch_opened(WatchId id, const http::Response& response) {
  const auto found = watches.find(id);
  if (found == watches.end()) return;
  if (response.status != 200) {
    found->second->refused = error_from_response(response);
    return;
  }
  const auto handler = found->second->handlers.on_open;
  if (handler) handler();
}

void Client::State::watch_ended(WatchId id, std::optional<Error> error) {
  const auto found = watches.find(id);
  if (found == watches.end()) return;
  const std::shared_ptr<Watch> watch = found->second;
  const bool by_us = error && error->code == ErrorCode::kCancelled;
  if (watch->refused && !by_us) error = watch->refused;
  if (!stopped && error && error->http_status == 401) {
    deps.credentials.invalidate();
    if (!std::exchange(watch->renewed_credentials, true)) {
      watch->call = 0;
      return start_watch(id);
    }
  }
  watches.erase(id);
  watch->handlers.on_end(std::move(error));
}

Client::WatchId Client::watch(const Kind& kind, const std::string& namespace_, std::string query,
                              std::chrono::seconds server_timeout, WatchHandlers handlers) {
  State& state = *state_;
  const WatchId id = state.next_id++;
  const auto watch = std::make_shared<State::Watch>();
  watch->kind = std::make_shared<const Kind>(kind);
  if (!query.empty()) query += "&";
  query += "watch=1&timeoutSeconds=" + std::to_string(server_timeout.count());
  watch->request.target = collection_target(kind, namespace_, query);
  watch->request.headers = {{"Accept", accept_header(kind, Accept::kWatch)},
                            {"User-Agent", state.deps.user_agent}};
  watch->request.idle_timeout = std::min(server_timeout + kIdleGrace, kMostSilent);
  watch->request.decode = [decoder = watch->kind](std::string_view line) -> std::any {
    return decode_watch_line(*decoder, line);
  };
  watch->handlers = std::move(handlers);
  state.watches.emplace(id, watch);
  if (state.stopped) {
    state.deps.loop.post([weak = state.weak_from_this(), id] {
      if (const auto self = weak.lock()) self->watch_ended(id, shutting_down());
    });
  } else {
    state.start_watch(id);
  }
  return id;
}

void Client::cancel_watch(WatchId watch) {
  State& state = *state_;
  const auto found = state.watches.find(watch);
  if (found == state.watches.end()) return;
  if (found->second->call != 0) return state.deps.transport.cancel(found->second->call);
  state.deps.loop.post([weak = state.weak_from_this(), watch] {
    if (const auto self = weak.lock()) self->watch_ended(watch, shutting_down());
  });
}

}  // namespace holdfast::kube
