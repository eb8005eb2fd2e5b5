#include "tests/unit/pools/operator_world.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "core/file_reader.h"
#include "core/json_time.h"
#include "core/random.h"
#include "operator/events/events.h"
#include "operator/jobs/telemetry.h"
#include "operator/pools/worker_leases.h"
#include "operator/runtime/manager.h"
#include "tests/support/decode_body.h"
#include "tests/support/no_credentials.h"

namespace holdfast::pools::testing {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::seconds;

const SteadyTime kLoopStart{std::chrono::hours(1)};  // of a ManualLoop
const Time kServerStart{seconds(1'700'000'000)};
constexpr std::chrono::milliseconds kStep{20};

}  // namespace

Json durable_job(const std::string& name, const Json& more) {
  Json spec = {
      {"template",
       {{"spec",
         {{"containers",
           Json::array({{{"name", "main"}, {"image", "image"}, {"command", {"/work"}}}})}}}}}};
  spec.update(more);
  return {{"apiVersion", "holdfast.dev/v1alpha1"},
          {"kind", "DurableJob"},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

std::string path_of(const Json& pod) {
  return std::string(kPods) + "/" + string_at(at(pod, "metadata"), "name");
}

// Carries requests to the server at once, and its answers in a later turn.
class OperatorWorld::Transport : public http::Transport {
 public:
  explicit Transport(OperatorWorld& world) : world_(world), loop_(*world.loop_) {}

  http::CallId send(http::Request request, http::ResponseHandler handler) override {
    ApiRequest asked{"holdfast", request.method, request.target, "", std::move(request.body)};
    for (const auto& [name, value] : request.headers) {
      if (name == "Content-Type") asked.content_type = value;
    }
    http::Response response = as_response(world_.ask(asked));
    test::decode_body(request, response);
    loop_.post([handler = std::move(handler), response = std::move(response)]() mutable {
      handler(std::move(response));
    });
    return next_id_++;
  }

  http::CallId open(http::StreamRequest request, http::StreamHandlers handlers) override {
    const auto stream = std::make_shared<Stream>();
    stream->id = next_id_++;
    stream->request = std::move(request);
    stream->handlers = std::move(handlers);
    const ApiRequest asked{"holdfast", "GET", stream->request.target, "", ""};
    if (world_.before) {
      if (const auto refused = world_.before(asked)) return refuse(stream, *refused);
    }
    const auto opened =
        world_.server_->watch(asked, {[this, stream](std::string line) {
                                        if (world_.is_stuck(stream->request.target)) return;
                                        stream->lines.push_back(std::move(line));
                                        loop_.post([stream] { stream->flush(); });
                                      },
                                      [this, stream] { end(stream, std::nullopt); }});
    if (opened.id == 0) return refuse(stream, opened.answer);
    stream->watch = opened.id;
    streams_[stream->id] = stream;
    loop_.post([stream, response = as_response(opened.answer)] {
      stream->is_open = true;
      stream->handlers.on_open(response);
      stream->flush();
    });
    return stream->id;
  }

  void cancel(http::CallId call) override {
    const auto found = streams_.find(call);
    if (found == streams_.end()) return;  // the answer is on its way
    const auto stream = found->second;
    world_.server_->close_watch(stream->watch);
    end(stream, make_error(ErrorCode::kCancelled, "cancelled"));
  }

 private:
  struct Stream {
    http::CallId id = 0;
    http::StreamRequest request;
    http::StreamHandlers handlers;
    simulation::WatchId watch = 0;
    std::vector<std::string> lines;
    bool is_open = false;
    bool has_ended = false;

    void flush() {
      if (!is_open || has_ended || lines.empty()) return;
      std::vector<std::any> decoded;
      for (const std::string& line : std::exchange(lines, {})) {
        decoded.push_back(request.decode(line));
      }
      handlers.on_lines(std::move(decoded));
    }
  };

  http::CallId refuse(const std::shared_ptr<Stream>& stream, const ApiAnswer& answer) {
    loop_.post([stream, response = as_response(answer)] {
      stream->handlers.on_open(response);
      stream->handlers.on_end(std::nullopt);
    });
    return stream->id;
  }

  void end(const std::shared_ptr<Stream>& stream, std::optional<Error> error) {
    streams_.erase(stream->id);
    loop_.post([stream, error = std::move(error)] {
      if (std::exchange(stream->has_ended, true)) return;
      stream->handlers.on_end(error);
    });
  }

  http::Response as_response(const ApiAnswer& answer) const {
    http::Response response;
    response.status = answer.status;
    response.body = answer.body;
    response.date = std::chrono::floor<seconds>(world_.wall_clock());
    response.sent = response.received = loop_.now();
    return response;
  }

  OperatorWorld& world_;
  test::ManualLoop& loop_;
  http::CallId next_id_ = 1;
  std::map<http::CallId, std::shared_ptr<Stream>> streams_;
};

struct OperatorWorld::Process : jobs::Telemetry, events::EventSink, notify::Poster {
  Process(OperatorWorld& world, int life)
      : operator_world(world),
        transport(world),
        credentials(*world.loop_),
        random(static_cast<std::uint64_t>(life)),
        client({*world.loop_, transport, credentials, random, log, {}, "holdfast", 0}),
        manager({*world.loop_, client, random, log, *this, *this, *this, system_files()},
                config(life)) {}

  runtime::Manager::Config config(int life) const {
    runtime::Manager::Config config;
    if (operator_world.batch_jobs) config.batch_jobs.emplace(operator_world.batch_selector);
    config.namespaces = operator_world.namespaces;
    config.membership.id = "holdfast-" + std::to_string(life);
    config.membership.shards = operator_world.shards;
    config.jobs.agent_image = "agent";
    return config;
  }

  void attempt_ended(const std::string&, const std::string&) override {}
  void stage_ended(const std::string&, std::optional<Duration>) override {}
  void recovered(const std::string&, reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void admitted(const std::string&, const std::string&, Duration) override {}
  void shard_moved(const std::string&) override {}
  void record(const events::ObjectReference& regarding, bool, const std::string& reason,
              const std::string&, const std::string&) override {
    operator_world.events.push_back(regarding.kind + " " + reason);
  }
  void post(const notify::Target&, notify::Message, Done) override { FAIL() << "nobody is told"; }

  OperatorWorld& operator_world;
  Log log;
  Transport transport;
  test::NoCredentials credentials;
  SeededRandom random;
  kube::Client client;
  runtime::Manager manager;
};

OperatorWorld::OperatorWorld()
    : loop_(std::make_unique<test::ManualLoop>()),
      server_(std::make_unique<simulation::ApiServer>([this] { return wall_clock(); }, 1)) {
  create(
      "/api/v1/namespaces",
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "holdfast-system"}}}});
}

bool OperatorWorld::is_stuck(const std::string& target) const {
  return !stuck_watch.empty() && target.find(stuck_watch) != std::string::npos;
}

OperatorWorld::~OperatorWorld() { stop(); }

Time OperatorWorld::wall_clock() const {
  return kServerStart + earlier_ + (loop_->now() - kLoopStart);
}

void OperatorWorld::start() {
  stop();
  process_ = std::make_unique<Process>(*this, ++lives_);
  process_->manager.start();
}

void OperatorWorld::stop() {
  if (!process_) return;
  before = [](const ApiRequest&) { return ApiAnswer{503, "{}", 0}; };
  process_->manager.stop([] {});
  process_->client.shut_down();
  loop_->run_ready();
  EXPECT_TRUE(process_->client.idle());
  process_.reset();
  before = nullptr;
  earlier_ += loop_->now() - kLoopStart;
  loop_ = std::make_unique<test::ManualLoop>();
}

bool OperatorWorld::run_until(const std::function<bool()>& done, Duration limit) {
  const SteadyTime end = loop_->now() + limit;
  Duration since_bookmarks{0};
  loop_->run_ready();
  while (!done()) {
    if (loop_->now() >= end) return false;
    loop_->advance(kStep);
    since_bookmarks += kStep;
    if (since_bookmarks >= seconds(1)) {
      server_->send_bookmarks();
      since_bookmarks = Duration::zero();
    }
    loop_->run_ready();
  }
  return true;
}

void OperatorWorld::run(Duration time) {
  run_until([] { return false; }, time);
}

ApiAnswer OperatorWorld::ask(const ApiRequest& request) {
  if (before) {
    if (auto answer = before(request)) return *std::move(answer);
  }
  const bool is_ours = request.target.find("/namespaces/default/pods") != std::string::npos ||
                       request.target.find("/namespaces/default/leases") != std::string::npos;
  if (request.method != "GET" && is_ours) {
    const std::size_t start = request.target.find("/namespaces/default/") + 20;
    writes.push_back(request.method + " " + request.target.substr(start));
  }
  ApiAnswer answer = server_->handle(request);
  server_->advance_watch_cache();
  return answer;
}

Json OperatorWorld::call(const std::string& method, const std::string& target, const Json& body,
                         const std::string& content_type) {
  ApiRequest request{"test", method, target, content_type, body.is_null() ? "" : body.dump()};
  const ApiAnswer answer = server_->handle(request);
  server_->advance_watch_cache();
  EXPECT_TRUE(answer.status >= 200 && answer.status < 300)
      << method << " " << target << ": " << answer.body;
  return Json::parse(answer.body);
}

Json OperatorWorld::create(const std::string& collection, const Json& object) {
  return call("POST", collection, object);
}
Json OperatorWorld::patch(const std::string& path, const Json& change) {
  return call("PATCH", path, change, "application/merge-patch+json");
}
Json OperatorWorld::put(const std::string& path, const Json& object) {
  return call("PUT", path, object);
}
void OperatorWorld::remove(const std::string& path, const Json& options) {
  call("DELETE", path, options);
}

void OperatorWorld::collect_garbage() {
  while (server_->collect_garbage()) server_->advance_watch_cache();
  server_->advance_watch_cache();
}

std::vector<Json> OperatorWorld::all(const std::string& resource) const {
  std::vector<Json> found;
  server_->for_each(resource, [&](const Json& object) {
    if (string_at(at(object, "metadata"), "namespace") == "default") found.push_back(object);
  });
  return found;
}

std::size_t OperatorWorld::counted(const std::string& namespace_, const std::string& phase) const {
  const auto jobs = process_->manager.jobs().jobs_by_namespace();
  const auto phases = jobs.find(namespace_);
  if (phases == jobs.end()) return 0;
  const auto count = phases->second.find(phase);
  return count == phases->second.end() ? 0 : count->second;
}

Json OperatorWorld::find(const std::string& resource, const std::string& name) const {
  const Json* const found = server_->find(resource, "default", name);
  return found ? *found : Json();
}

void OperatorWorld::renew(const std::string& pod_uid, WorkerReport report) {
  const Json work_lease = find("leases", work_lease_name(pod_uid));
  if (!work_lease.is_null()) {
    report.work_uid = string_at(at(work_lease, "metadata"), "uid");
    report.seq = work(pod_uid).seq;
  }
  Json lease = find("leases", worker_lease_name(pod_uid));
  lease["spec"]["renewTime"] = format_time_micros(wall_clock());
  lease["metadata"]["annotations"][kWorkerAnnotation] = encode_report(report);
  put(std::string(kLeases) + "/" + worker_lease_name(pod_uid), lease);
}

Work OperatorWorld::work(const std::string& pod_uid) const {
  const Json lease = find("leases", work_lease_name(pod_uid));
  const Json& annotations = at(at(lease, "metadata"), "annotations");
  Result<Work> work = decode_work(string_at(annotations, kWorkAnnotation));
  EXPECT_TRUE(work.ok());
  return work.ok() ? *work : Work();
}

}  // namespace holdfast::pools::testing
