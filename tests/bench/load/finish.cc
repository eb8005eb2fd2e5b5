#include <iostream>
#include <memory>

#include "tests/bench/load/load.h"

namespace holdfast::bench {
namespace {

constexpr std::chrono::seconds kWatch{3600};
constexpr const char* kSucceeded =
    R"({"status":{"phase":"Succeeded","containerStatuses":[{"name":"main","image":"x","imageID":"x",)"
    R"("ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}})";

struct Run {
  explicit Run(kube::Client& the_client) : client(the_client) {}

  kube::Client& client;
  FinishOptions options;
  int finished = 0;
  std::string error;
  Callback<Unit>::Done ended;

  void end() {
    if (const auto done = std::exchange(ended, nullptr)) done(Unit{});
  }
};

Task<void> end_pod(std::shared_ptr<Run> run, kube::ObjectPtr pod) {
  kube::CallOptions options;
  options.content_type = "application/strategic-merge-patch+json";
  options.answer_with_metadata = true;
  auto patch =
      run->client.patch(kube::object_path("/api/v1", "pods", pod->namespace_, pod->name, "status"),
                        kSucceeded, options);
  const Result<JsonDocument> answer = co_await patch;
  if (!answer) {
    run->error = pod->name + ": " + answer.error().message;
    run->end();
  } else if (++run->finished == run->options.count) {
    run->end();
  }
}

kube::Kind pods() {
  kube::Kind kind;
  kind.name = kind.plural = "pods";
  kind.group_path = "/api/v1";
  kind.metadata_only = true;
  kind.decode = [](const JsonView& json) -> kube::ObjectPtr {
    auto pod = std::make_shared<kube::Object>();
    if (!kube::decode_meta(json, *pod)) return nullptr;
    return pod;
  };
  return kind;
}

}  // namespace

Task<Result<Json>> finish(kube::Client& client, FinishOptions options) {
  const auto run = std::make_shared<Run>(client);
  run->options = std::move(options);
  kube::Client::WatchHandlers handlers;
  // Whoever starts this waits for the line before pods are made.
  handlers.on_open = [] { std::cout << "watching" << std::endl; };
  handlers.on_events = [run](std::vector<kube::WatchEvent>&& events) {
    for (const kube::WatchEvent& event : events) {
      if (event.type == kube::WatchEventType::kAdded && event.object) {
        spawn(end_pod(run, event.object));
      }
    }
  };
  handlers.on_end = [run](std::optional<Error> error) {
    if (run->ended) run->error = error ? error->message : "the watch has ended";
    run->end();
  };
  const SteadyTime began = client.loop().now();
  kube::Client::WatchId watch = 0;
  Callback<Unit> ended([&](Callback<Unit>::Done done) {
    run->ended = std::move(done);
    watch = client.watch(pods(), run->options.namespace_, "", kWatch, handlers);
  });
  co_await ended;
  client.cancel_watch(watch);
  if (!run->error.empty()) co_return make_error(ErrorCode::kTerminal, run->error);
  co_return Json{{"seconds", to_seconds(client.loop().now() - began)}, {"pods", run->finished}};
}

}  // namespace holdfast::bench
