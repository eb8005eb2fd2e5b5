#include "tests/simulation/gateway.h"

#include <memory>
#include <utility>

#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Some day; the operator knows of it only through Date headers and timestamps.
const Time kBeginning = *parse_time("2026-03-01T00:00:00Z");
// What the server gives one request, and a cache that is behind a version that is asked for.
constexpr seconds kServerTimeout{60};
// A creation that was refused is tried again each 30 s, so nobody sees a pause that is shorter.
constexpr seconds kUnseenPause{35};
constexpr milliseconds kCacheWait{3000};
constexpr milliseconds kCachePoll{100};
// A gap of over 5 s starts windows anew, on a clock that may be a tenth too slow.
constexpr seconds kLongTrouble{6};

bool is_write(const std::string& method) { return method != "GET"; }

// Answered from etcd rather than from the watch cache.
bool needs_etcd(const ApiRequest& request) {
  if (is_write(request.method)) return true;
  const std::string version = query_value(request.target, "resourceVersion");
  return version.empty() && query_value(request.target, "continue").empty();
}

// The version that the watch cache must have reached; 0: any.
std::uint64_t wanted_version(const ApiServer& server, const ApiRequest& request) {
  if (request.method != "GET") return 0;
  const std::string version = query_value(request.target, "resourceVersion");
  if (!version.empty()) return version_number(version);
  return is_watch(request.target) ? server.version() : 0;
}

}  // namespace

std::string query_value(const std::string& target, const std::string& name) {
  std::size_t begin = target.find('?');
  while (begin != std::string::npos) {
    ++begin;
    const std::size_t end = target.find('&', begin);
    if (target.compare(begin, name.size(), name) == 0 && target[begin + name.size()] == '=') {
      const std::size_t value = begin + name.size() + 1;
      return target.substr(value, end == std::string::npos ? end : end - value);
    }
    begin = end;
  }
  return "";
}

bool is_watch(const std::string& target) { return !query_value(target, "watch").empty(); }

ApiAnswer refusal(int status, const std::string& reason, const std::string& message,
                  int retry_after_seconds) {
  const Json body = {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                     {"message", message}, {"reason", reason},   {"code", status}};
  return {status, body.dump(), retry_after_seconds};
}

Gateway::Gateway(Scheduler& scheduler, ApiServer& server, std::uint64_t seed)
    : scheduler_(scheduler), server_(server), random_(seed) {}

namespace {

// As of a container that a mutating webhook has added.
ApiAnswer broken_pod() {
  const Json cause = {{"reason", "FieldValueRequired"},
                      {"message", "Required value"},
                      {"field", "spec.containers[1].image"}};
  ApiAnswer answer = refusal(422, "Invalid", "Pod is invalid: spec.containers[1].image");
  Json status = Json::parse(answer.body);
  status["details"]["causes"] = Json::array({cause});
  answer.body = status.dump();
  return answer;
}

}  // namespace

Time Gateway::beginning() { return kBeginning; }

Time Gateway::wall_clock() const { return kBeginning + scheduler_.now() + stepped_; }

void Gateway::broken_pods(bool on) {
  if (on == pods_broken_) return;
  const Duration now = scheduler_.now();
  const bool same_trouble = pods_mended_at_ && now - *pods_mended_at_ < kUnseenPause;
  if (on && !same_trouble) pods_broken_since_ = now;
  if (!on) pods_mended_at_ = now;
  pods_broken_ = on;
}

Duration Gateway::pods_broken_for() const {
  return pods_broken_ ? scheduler_.now() - pods_broken_since_ : Duration::zero();
}

ApiAnswer Gateway::handle(const Delivery& delivery) {
  if (before_request) before_request(delivery);
  const ApiRequest& request = delivery.request;
  const bool creates_pod = request.method == "POST" && request.target.ends_with("/pods");
  if (quota_ && creates_pod && on_quota) on_quota();
  ApiAnswer answer;
  if (quota_ && creates_pod) {
    answer = refusal(403, "Forbidden", "pods is forbidden: exceeded quota: pods, used: pods=0");
  } else if (pods_broken_ && creates_pod && delivery.replica >= 0) {
    answer = broken_pod();
  } else {
    answer = server_.handle(request);
  }
  if (after_request) after_request(delivery, answer);
  return answer;
}

void Gateway::after(const Fate& fate, std::function<void()> what) {
  if (fate.held == Duration::zero()) return what();
  scheduler_.after(fate.held, std::move(what));
}

void Gateway::arrive(Delivery delivery, Reply reply) {
  const Fate fate = fate_of ? fate_of(delivery.request) : Fate();
  const auto kept = std::make_shared<Delivery>(std::move(delivery));
  after(fate, [this, fate, kept, reply = std::move(reply)]() mutable {
    const bool held = fate.held > Duration::zero();
    const bool is_given_up = kept->awaited && !kept->awaited();
    if (held && !fate.on_the_way && is_given_up) return;
    if (fate.answer_held > Duration::zero()) {
      reply = [this, late = fate.answer_held, reply](std::optional<ApiAnswer> answer) {
        scheduler_.after(late, [reply, answer] { reply(answer); });
      };
    }
    if (fate.refused == 0) return pass(std::move(*kept), std::move(reply));
    reply(refusal(fate.refused, "Trouble", "trouble of one namespace", fate.retry_after_seconds));
  });
}

void Gateway::pass(Delivery delivery, Reply reply) {
  if (!up_) return reply(std::nullopt);
  if (stalled_ && needs_etcd(delivery.request)) return hold(std::move(delivery), std::move(reply));
  if (wanted_version(server_, delivery.request) > server_.watch_cache_version()) {
    const auto waiting = std::make_shared<Delivery>(std::move(delivery));
    const Duration until = scheduler_.now() + kCacheWait;
    const auto poll = std::make_shared<std::function<void()>>();
    *poll = [this, waiting, until, poll, reply, incarnation = incarnation_] {
      const auto keep = std::exchange(*poll, nullptr);
      if (!up_ || incarnation != incarnation_) return reply(std::nullopt);
      const bool behind = wanted_version(server_, waiting->request) > server_.watch_cache_version();
      if (!behind || scheduler_.now() >= until) return reply(handle(*waiting));
      *poll = keep;
      scheduler_.after(kCachePoll, [poll] { (*poll)(); });
    };
    scheduler_.after(kCachePoll, [poll] { (*poll)(); });
    return;
  }
  reply(handle(delivery));
}

// Etcd hangs: the request hangs with it. One that has hung for the server's own limit is answered
// with an error, and may still have been applied.
void Gateway::hold(Delivery delivery, Reply reply) {
  const auto kept = std::make_shared<Delivery>(std::move(delivery));
  const Duration since = scheduler_.now();
  held_.push_back([this, kept, reply, since](bool lost) {
    if (lost) return reply(std::nullopt);
    const bool late = scheduler_.now() - since >= kServerTimeout;
    if (!late) return reply(handle(*kept));
    if (is_write(kept->request.method) && random_.below(2) == 0) handle(*kept);
    reply(refusal(504, "Timeout", "etcdserver: request timed out"));
  });
}

void Gateway::open(Delivery delivery, WatchSink sink, OpenReply reply) {
  const Fate fate = fate_of ? fate_of(delivery.request) : Fate();
  const auto kept = std::make_shared<Delivery>(std::move(delivery));
  after(fate, [this, fate, kept, sink = std::move(sink), reply = std::move(reply)]() mutable {
    if (fate.refused == 0) return pass(std::move(*kept), std::move(sink), std::move(reply));
    reply(Opened{
        refusal(fate.refused, "Trouble", "trouble of one namespace", fate.retry_after_seconds), 0});
  });
}

void Gateway::pass(Delivery delivery, WatchSink sink, OpenReply reply) {
  const auto kept = std::make_shared<Delivery>(std::move(delivery));
  const auto now_open = [this, kept, sink, reply] {
    if (before_request) before_request(*kept);
    ApiServer::Opened opened = server_.watch(kept->request, sink);
    reply(Opened{std::move(opened.answer), opened.id});
  };
  if (!up_) return reply(std::nullopt);
  if (stalled_ && needs_etcd(kept->request)) {
    held_.push_back([now_open, reply](bool lost) {
      if (lost) return reply(std::nullopt);
      now_open();
    });
    return;
  }
  if (wanted_version(server_, kept->request) <= server_.watch_cache_version()) return now_open();
  // A version that the cache has not reached: it is waited for, as the server does.
  const Duration until = scheduler_.now() + kCacheWait;
  const auto poll = std::make_shared<std::function<void()>>();
  *poll = [this, kept, until, poll, now_open, reply, incarnation = incarnation_] {
    const auto keep = std::exchange(*poll, nullptr);
    if (!up_ || incarnation != incarnation_) return reply(std::nullopt);
    const bool behind = wanted_version(server_, kept->request) > server_.watch_cache_version();
    if (!behind || scheduler_.now() >= until) return now_open();
    *poll = keep;
    scheduler_.after(kCachePoll, [poll] { (*poll)(); });
  };
  scheduler_.after(kCachePoll, [poll] { (*poll)(); });
}

std::optional<ApiAnswer> Gateway::ask(const std::string& user, const std::string& method,
                                      const std::string& target, const Json& body,
                                      const std::string& content_type) {
  if (in_trouble()) return std::nullopt;
  Delivery delivery;
  delivery.request = {user, method, target, content_type, body.is_null() ? "" : body.dump()};
  delivery.sent = scheduler_.now();
  return handle(delivery);
}

void Gateway::go_down() {
  if (!up_) return;
  trouble_begins();
  up_ = false;
  ++incarnation_;
  for (auto& held : std::exchange(held_, {})) held(/*lost=*/true);
  stalled_ = false;
  restart(/*cut_off=*/true);
}

void Gateway::come_up() {
  if (std::exchange(up_, true)) return;
  trouble_ends();
  advance();
}

void Gateway::stall() {
  trouble_begins();
  stalled_ = up_;
}

void Gateway::trouble_begins() {
  if (!in_trouble()) trouble_began_ = scheduler_.now();
}

void Gateway::trouble_ends() {
  if (scheduler_.now() - trouble_began_ > kLongTrouble) last_trouble_end_ = scheduler_.now();
}

void Gateway::unstall() {
  if (!std::exchange(stalled_, false)) return;
  trouble_ends();
  for (auto& held : std::exchange(held_, {})) held(/*lost=*/false);
  advance();
}

void Gateway::restart(bool cut_off) {
  cutting_off_ = cut_off;
  server_.restart();
  cutting_off_ = false;
}

void Gateway::changed() {
  if (std::exchange(advance_pending_, true)) return;
  const Duration usual = milliseconds(1) + Duration(random_.below(4'000'000));
  scheduler_.after(usual + lag_, [this] { advance(); });
}

void Gateway::advance() {
  advance_pending_ = false;
  // Etcd says nothing while it hangs.
  if (up_ && !stalled_) server_.advance_watch_cache();
}

}  // namespace holdfast::simulation
