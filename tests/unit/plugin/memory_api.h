// An Api over objects in memory, for one kind of object at a time. It fills in the defaults that a
// test names, and fails where a test says so.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/base/api.h"

namespace holdfast::test {

class MemoryApi : public plugin::Api {
 public:
  using Resource = plugin::Resource;

  Result<std::string> context_namespace() override { return std::string("default"); }

  Result<Json> get(const Resource& resource, const std::string& namespace_,
                   const std::string& name) override {
    calls.push_back("get " + std::string(resource.plural) + " " + name);
    const auto found = objects.find(key(resource, namespace_, name));
    if (found == objects.end()) return not_found(name);
    return found->second;
  }

  std::string server() override { return "https://cluster.example.com"; }

  Result<std::vector<Json>> list(const Resource& resource, const std::string& namespace_,
                                 const plugin::Selector&) override {
    calls.push_back("list " + std::string(resource.plural) + " in " + namespace_);
    const std::string prefix = std::string(resource.plural) + "/" + namespace_;
    if (const auto error = list_errors.find(prefix); error != list_errors.end()) {
      return error->second;
    }
    std::vector<Json> all;
    for (const auto& [name, object] : objects) {
      if (name.starts_with(namespace_.empty() ? prefix : prefix + "/")) all.push_back(object);
    }
    return all;
  }

  Result<std::vector<kube::ObjectPtr>> first_page(const Resource& resource,
                                                  const std::string& namespace_,
                                                  plugin::Watch::Decode decode) override {
    const Result<std::vector<Json>> all = list(resource, namespace_, {});
    if (!all.ok()) return all.error();
    std::vector<kube::ObjectPtr> made;
    for (const Json& object : *all) made.push_back(decode(*JsonDocument::parse(object.dump())));
    return made;
  }

  Result<Json> create(const Resource& resource, const std::string& namespace_, const Json& object,
                      bool dry_run) override {
    const std::string name = string_at(at(object, "metadata"), "name");
    calls.push_back(std::string(dry_run ? "try " : "create ") + resource.plural + " " + name);
    if (before_create) before_create();
    if (!create_errors.empty()) {
      const Error error = create_errors.front();
      create_errors.erase(create_errors.begin());
      if (!error.maybe_applied || !applies_lost_creates) return error;
      keep(resource, namespace_, name, object);
      return error;
    }
    if (objects.count(key(resource, namespace_, name)) > 0) {
      Error error = make_error(ErrorCode::kAlreadyExists, name + " already exists");
      error.http_status = 409;
      return error;
    }
    if (dry_run) return defaulted(object);
    return keep(resource, namespace_, name, object);
  }

  Result<Json> patch(const Resource& resource, const std::string& namespace_,
                     const std::string& name, const Json& merge_patch) override {
    calls.push_back("patch " + std::string(resource.plural) + " " + name);
    const auto found = objects.find(key(resource, namespace_, name));
    if (found == objects.end()) return not_found(name);
    found->second.merge_patch(merge_patch);
    return found->second;
  }

  Result<std::string> text(const std::string& path) override {
    calls.push_back("text " + path);
    return log;
  }

  Result<std::unique_ptr<plugin::Mirror>> mirror(const Resource&, const std::string&,
                                                 const plugin::Selector&) override {
    return make_error(ErrorCode::kTerminal, "no mirror here");
  }

  Result<std::unique_ptr<plugin::Watch>> watch(const Resource& resource, const std::string&,
                                               plugin::Watch::Decode decode,
                                               plugin::Watch::OnChange on_change) override {
    class Still : public plugin::Watch {
     public:
      bool synced() override { return true; }
      std::string trouble() override { return ""; }
      std::optional<Error> look(Duration) override { return std::nullopt; }
    };
    for (const auto& [name, object] : objects) {
      if (!name.starts_with(std::string(resource.plural) + "/")) continue;
      const Result<JsonDocument> document = JsonDocument::parse(object.dump());
      if (const auto made = decode(*document)) on_change(nullptr, made);
    }
    on_change(nullptr, nullptr);
    return std::unique_ptr<plugin::Watch>(std::make_unique<Still>());
  }

  Time now() override { return time; }

  static std::string key(const Resource& resource, const std::string& namespace_,
                         const std::string& name) {
    return std::string(resource.plural) + "/" + namespace_ + "/" + name;
  }

  static Error not_found(const std::string& name) {
    Error error =
        make_error(ErrorCode::kNotFound, "durablejobs.holdfast.dev \"" + name + "\" not found");
    error.http_status = 404;
    error.reason = "NotFound";
    return error;
  }

  Json defaulted(Json object) const {
    Json spec = defaults;
    spec.merge_patch(at(object, "spec"));
    object["spec"] = spec;
    return object;
  }

  Json keep(const Resource& resource, const std::string& namespace_, const std::string& name,
            const Json& object) {
    Json kept = defaulted(object);
    kept["metadata"]["namespace"] = namespace_;
    kept["metadata"]["uid"] = "uid-" + std::to_string(++uids);
    objects[key(resource, namespace_, name)] = kept;
    return kept;
  }

  std::map<std::string, Json> objects;
  std::vector<std::string> calls;
  Json defaults = Json::object();            // of spec
  std::vector<Error> create_errors;          // of the next creates
  std::map<std::string, Error> list_errors;  // by "leases/<namespace>"
  bool applies_lost_creates = false;         // a create without an answer has made the object
  std::function<void()> before_create;       // what others do meanwhile
  std::string log;
  Time time{};
  int uids = 0;
};

}  // namespace holdfast::test
