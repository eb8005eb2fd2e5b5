#include "tests/simulation/server/resources.h"

namespace holdfast::simulation {

const Resource* find_resource(std::string_view group, std::string_view version,
                              std::string_view plural) {
  for (const Resource& resource : kResources) {
    if (plural == resource.plural && group == resource.group && version == resource.version) {
      return &resource;
    }
  }
  return nullptr;
}

const Resource* find_kind(std::string_view api_version, std::string_view kind) {
  for (const Resource& resource : kResources) {
    if (kind == resource.kind && api_version == resource.api_version()) return &resource;
  }
  return nullptr;
}

}  // namespace holdfast::simulation
