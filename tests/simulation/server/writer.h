// Creates, updates, patches and deletions: their preconditions and effects.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/random.h"
#include "tests/simulation/server/query.h"
#include "tests/simulation/server/status.h"
#include "tests/simulation/server/storage.h"

namespace holdfast::simulation {

struct DeleteOptions {
  std::optional<std::string> uid{};  // preconditions
  std::optional<std::string> version{};
  std::optional<std::int64_t> grace_seconds{};
  std::string propagation{};  // "", "Background", "Foreground", "Orphan"
};

class Writer {
 public:
  Writer(Storage& storage, std::function<Time()> clock, std::uint64_t seed)
      : storage_(storage), clock_(std::move(clock)), random_(seed) {}

  ApiAnswer create(const Target& target, const std::string& body);
  ApiAnswer replace(const Target& target, const std::string& body);
  ApiAnswer patch(const Target& target, const std::string& content_type, const std::string& body);
  ApiAnswer remove(const Target& target, const std::string& body);
  ApiAnswer remove_collection(const Target& target, const std::string& body);
  // Binds a pod to a node, as a scheduler does.
  ApiAnswer bind(const Target& target, const std::string& body);

  // The same for the server's own parts.
  ApiAnswer remove(Table& table, StoredPtr object, const DeleteOptions& options);
  void create_namespace(const std::string& name);
  // Writes an existing object. Removes it if it is being deleted and has no finalizers.
  void rewrite(Table& table, const StoredPtr& old, Json object);

  Time now() const { return clock_(); }

 private:
  ApiAnswer create_object(const Resource& resource, Json object);
  // `uid`: a precondition of a PUT.
  ApiAnswer update(const Target& target, const StoredPtr& old, Json object, const std::string& uid);
  ApiAnswer remove_namespace(Table& table, const StoredPtr& object);
  // Empty: the namespace accepts new objects.
  std::optional<ApiAnswer> refused_by_namespace(const Resource& resource, const Json& object) const;
  void fill_metadata(const Resource& resource, Json& metadata);
  std::string random_uid();
  std::string random_suffix();

  Storage& storage_;
  std::function<Time()> clock_;
  SeededRandom random_;
};

}  // namespace holdfast::simulation
