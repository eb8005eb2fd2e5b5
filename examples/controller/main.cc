// An example controller: it keeps the annotation example.dev/bytes of every ConfigMap that carries
// the label example.dev/measure. Usage: example-controller KUBECONFIG [NAMESPACE]
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/reconcile_pool.h"
#include "client/kube/connection.h"
#include "core/real_loop.h"

using namespace holdfast;

namespace {

constexpr const char* kAnnotation = "example.dev/bytes";

// What the controller needs of a ConfigMap; the rest is not kept in memory.
struct ConfigMap : kube::Object {
  std::string bytes;  // of its data, as JSON
  std::string noted;  // what the annotation says
};

kube::ObjectPtr decode(const JsonView& json) {
  auto object = std::make_shared<ConfigMap>();
  if (!kube::decode_meta(json, *object)) return nullptr;
  object->bytes = std::to_string(at(json, "data").text().size());
  object->noted = string_at(at(at(json, "metadata"), "annotations"), kAnnotation);
  return object;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: example-controller KUBECONFIG [NAMESPACE]\n";
    return 2;
  }
  RealLoop loop;
  SeededRandom random(std::random_device{}());
  const Log log = Log::create(LogLevel::kInfo, LogFormat::kText);
  kube::ConnectOptions options;
  options.kubeconfig = argv[1];
  options.user_agent = "example-controller";
  auto connection = kube::Connection::connect({loop, random, log, {}}, options);
  if (!connection.ok()) {
    std::cerr << "example-controller: " << connection.error().message << "\n";
    return 1;
  }
  kube::Client& client = (*connection)->client();

  kube::Kind kind;
  kind.name = kind.plural = "configmaps";
  kind.group_path = "/api/v1";
  kind.label_selector = "example.dev/measure";
  kind.decode = decode;
  std::vector<std::string> namespaces;  // none: all
  if (argc > 2) namespaces.emplace_back(argv[2]);
  cache::Informer informer({loop, client, random, log}, kind, namespaces);
  const cache::View<ConfigMap> config_maps(informer);

  // Compares what is with what should be, and writes the difference. An error comes again later.
  const auto reconcile = [&](std::string key) -> Task<controller::ReconcileResult> {
    const std::shared_ptr<const ConfigMap> object = config_maps.get(key);
    controller::ReconcileResult result;
    if (!object || object->noted == object->bytes) co_return result;
    const Json annotations = {{kAnnotation, object->bytes}};
    const Json patch = {{"metadata", {{"uid", object->uid}, {"annotations", annotations}}}};
    kube::CallOptions merge;
    merge.content_type = "application/merge-patch+json";
    auto write =
        client.patch(kube::object_path("/api/v1", "configmaps", object->namespace_, object->name),
                     patch.dump(), merge);
    const Result<JsonDocument> answer = co_await write;
    if (!answer.ok()) result.error = answer.error();
    log.info("measured", {{"object", key}, {"bytes", object->bytes}});
    co_return result;
  };
  controller::ReconcilePool pool({loop, log}, {}, reconcile);
  config_maps.on_change([&](const auto& change) {
    if (change.after) pool.queue().add(change.after->key());
  });
  loop.post([&] {
    informer.start();
    pool.start();
  });
  loop.run();
}
