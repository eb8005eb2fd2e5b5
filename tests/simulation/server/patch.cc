#include "tests/simulation/server/patch.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::simulation {
namespace {

constexpr std::string_view kDeleteFromList = "$deleteFromPrimitiveList/";
constexpr std::string_view kElementOrder = "$setElementOrder/";

// By what member the objects of a list are distinguished; "": the list is replaced as a whole.
std::string merge_key(const std::string& list) {
  if (list == "containers" || list == "initContainers" || list == "env" || list == "volumes") {
    return "name";
  }
  if (list == "conditions") return "type";
  if (list == "ownerReferences") return "uid";
  return "";
}

bool merges_primitives(const std::string& list) { return list == "finalizers"; }

void merge_strategically(Json& target, const Json& patch);

void merge_objects(Json& target, const Json& patch, const std::string& key) {
  for (const Json& element : patch) {
    const auto same = [&](const Json& other) { return at(other, key) == at(element, key); };
    const auto found = std::find_if(target.begin(), target.end(), same);
    if (string_at(element, "$patch") == "delete") {
      if (found != target.end()) target.erase(found);
    } else if (found != target.end()) {
      merge_strategically(*found, element);
    } else {
      // A patch's new elements stand before those that it does not name.
      target.push_back(element);
    }
  }
}

void merge_member(Json& target, const std::string& name, const Json& patch) {
  if (patch.is_null()) {
    target.erase(name);
  } else if (patch.is_array() && target.contains(name) && target[name].is_array()) {
    Json& list = target[name];
    if (const std::string key = merge_key(name); !key.empty()) {
      merge_objects(list, patch, key);
    } else if (merges_primitives(name)) {
      for (const Json& value : patch) {
        if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
      }
    } else {
      list = patch;
    }
  } else if (patch.is_object()) {
    Json& member = target[name];
    if (!member.is_object()) member = Json::object();
    merge_strategically(member, patch);
  } else {
    target[name] = patch;
  }
}

void delete_from_list(Json& target, const std::string& name, const Json& values) {
  if (!target.contains(name) || !target[name].is_array()) return;
  Json& list = target[name];
  for (const Json& value : values) {
    list.erase(std::remove(list.begin(), list.end(), value), list.end());
  }
  if (list.empty()) target.erase(name);
}

void merge_strategically(Json& target, const Json& patch) {
  if (string_at(patch, "$patch") == "replace") {
    target = patch;
    target.erase("$patch");
    return;
  }
  for (const auto& [name, value] : patch.items()) {
    if (name.rfind(kDeleteFromList, 0) == 0) {
      delete_from_list(target, name.substr(kDeleteFromList.size()), value);
    } else if (name.rfind(kElementOrder, 0) != 0 && name != "$retainKeys") {
      merge_member(target, name, value);
    }
  }
}

ApiAnswer apply_json_patch(const Json& patch, Json& object) {
  if (!patch.is_array()) return bad_request("the body is not a JSON patch");
  try {
    object = object.patch(patch);
  } catch (const Json::exception&) {
    return failure(422, "Invalid",
                   "the server rejected our request due to an error in our request");
  }
  return {};
}

}  // namespace

ApiAnswer apply_patch(const Resource& resource, const std::string& content_type,
                      const std::string& body, Json& object) {
  const Json patch = parse_body(body);
  if (patch.is_discarded()) return bad_request("error decoding patch");
  if (content_type == "application/json-patch+json") return apply_json_patch(patch, object);
  const bool strategic =
      content_type == "application/strategic-merge-patch+json" && !resource.custom;
  if (!strategic && content_type != "application/merge-patch+json") {
    return failure(415, "UnsupportedMediaType",
                   "the body of the request was in an unknown format - accepted media types "
                   "include: application/json-patch+json, application/merge-patch+json, "
                   "application/apply-patch+yaml");
  }
  if (!patch.is_object()) return bad_request("the patch is not an object");
  if (strategic) {
    merge_strategically(object, patch);
  } else {
    object.merge_patch(patch);
  }
  return {};
}

}  // namespace holdfast::simulation
