#include "tests/simulation/api_server.h"

#include <utility>

#include "tests/simulation/server/garbage.h"
#include "tests/simulation/server/query.h"
#include "tests/simulation/server/reader.h"
#include "tests/simulation/server/status.h"
#include "tests/simulation/server/storage.h"
#include "tests/simulation/server/watches.h"
#include "tests/simulation/server/writer.h"

namespace holdfast::simulation {
namespace {

bool wants_metadata(const ApiRequest& request) {
  return request.accept.find("as=PartialObjectMetadata") != std::string::npos;
}

ApiAnswer not_served() {
  ApiAnswer answer;
  answer.status = 404;
  answer.body = "404 page not found\n";
  return answer;
}

ApiAnswer not_allowed(const Resource& resource) {
  Json details = {{"kind", resource.plural}};
  if (*resource.group != 0) details["group"] = resource.group;
  return failure(405, "MethodNotAllowed", "this is not supported on resources of this kind",
                 std::move(details));
}

bool is_served(const Target& target) {
  if (target.resource == nullptr) return false;
  if (target.subresource.empty()) return true;
  if (target.subresource == "status") return target.resource->status;
  return target.subresource == "binding" && std::string_view(target.resource->plural) == "pods";
}

}  // namespace

struct ApiServer::State {
  State(std::function<Time()> clock, std::uint64_t seed)
      : reader(storage),
        writer(storage, std::move(clock), seed),
        watches(storage),
        garbage(storage, writer) {}

  ApiAnswer handle(const ApiRequest& request);
  ApiAnswer handle_collection(const ApiRequest& request, const Target& target);
  ApiAnswer handle_object(const ApiRequest& request, const Target& target);

  Storage storage;
  Reader reader;
  Writer writer;
  Watches watches;
  Garbage garbage;
  const ApiRequest* current = nullptr;
};

ApiAnswer ApiServer::State::handle_collection(const ApiRequest& request, const Target& target) {
  if (request.method == "GET") return reader.list(target, wants_metadata(request));
  if (target.resource->namespaced && target.namespace_.empty()) return not_served();
  if (request.method == "POST") return writer.create(target, request.body);
  if (request.method == "DELETE") return writer.remove_collection(target, request.body);
  if (target.resource->custom) return bad_request("name must be provided");
  return not_allowed(*target.resource);
}

ApiAnswer ApiServer::State::handle_object(const ApiRequest& request, const Target& target) {
  if (target.subresource == "binding") {
    return request.method == "POST" ? writer.bind(target, request.body) : not_served();
  }
  if (request.method == "GET") return reader.get(target, wants_metadata(request));
  if (request.method == "PUT") return writer.replace(target, request.body);
  if (request.method == "PATCH") {
    return writer.patch(target, request.content_type, request.body);
  }
  if (request.method == "DELETE" && target.subresource.empty()) {
    return writer.remove(target, request.body);
  }
  return not_allowed(*target.resource);
}

ApiAnswer ApiServer::State::handle(const ApiRequest& request) {
  const Target target = parse_target(request.target);
  if (!is_served(target)) return not_served();
  current = &request;
  ApiAnswer answer =
      target.name.empty() ? handle_collection(request, target) : handle_object(request, target);
  current = nullptr;
  return answer;
}

ApiServer::ApiServer(std::function<Time()> wall_clock, std::uint64_t seed)
    : state_(std::make_unique<State>(std::move(wall_clock), seed)) {
  for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    state_->writer.create_namespace(name);
  }
  state_->storage.compact();
}

ApiServer::~ApiServer() = default;

ApiAnswer ApiServer::handle(const ApiRequest& request) { return state_->handle(request); }

ApiServer::Opened ApiServer::watch(const ApiRequest& request, WatchSink sink) {
  const Target target = parse_target(request.target);
  // Of one object there is no watch but by a field selector: it is a GET.
  if (!is_served(target) || !target.name.empty()) return {handle(request), 0};
  return state_->watches.open(target, wants_metadata(request), std::move(sink));
}

void ApiServer::close_watch(WatchId watch) { state_->watches.close(watch); }

void ApiServer::on_applied(std::function<void(const Applied&)> observer) {
  state_->storage.observe([state = state_.get(), observer = std::move(observer)](
                              const Table& table, const Change& change) {
    Applied applied;
    applied.request = state->current;
    applied.resource = table.resource->plural;
    applied.before = change.before ? &change.before->json() : nullptr;
    applied.after = change.after ? &change.after->json() : nullptr;
    observer(applied);
  });
}

void ApiServer::advance_watch_cache() { state_->watches.advance(state_->storage.version()); }

void ApiServer::advance_watch_cache_to(std::uint64_t version) { state_->watches.advance(version); }

std::uint64_t ApiServer::version() const { return state_->storage.version(); }

std::uint64_t ApiServer::watch_cache_version() const { return state_->storage.cache_version(); }

void ApiServer::send_bookmarks() { state_->watches.send_bookmarks(); }

void ApiServer::compact() {
  state_->watches.expire_unserved();
  state_->storage.compact();
}

void ApiServer::restart(bool without_a_word) {
  state_->storage.reset_cache();
  state_->watches.end_all(without_a_word);
}

bool ApiServer::collect_garbage() { return state_->garbage.step(); }

std::string ApiServer::snapshot() const { return state_->storage.snapshot(); }

void ApiServer::restore(const std::string& snapshot) {
  state_->storage.restore(snapshot);
  state_->garbage.look_at_everything();
  state_->watches.end_all(false);
}

void ApiServer::for_each(const std::string& resource,
                         const std::function<void(const Json&)>& visit) const {
  const Table* const table = state_->storage.table(resource);
  if (table == nullptr) return;
  for (const auto& [key, object] : table->truth) visit(object->json());
}

const Json* ApiServer::find(const std::string& resource, const std::string& namespace_,
                            const std::string& name) const {
  const Table* const table = state_->storage.table(resource);
  if (table == nullptr) return nullptr;
  const auto found = table->truth.find(key_of(*table->resource, namespace_, name));
  return found == table->truth.end() ? nullptr : &found->second->json();
}

}  // namespace holdfast::simulation
