// Objects at rest, in few bytes. A cache holds very many finished objects, and each takes kilobytes
// if it is decoded. A kind's `decode` may return such an object packed. The cache keeps it packed,
// and readers get the whole object: see Store.
#pragma once

#include <string>
#include <utility>

#include "client/kube/object.h"

namespace holdfast::kube {

struct PackedObject final : Object {
  using Unpack = ObjectPtr (*)(const PackedObject& packed);

  // `object` with the content `its_bytes`, which only `reader` can read. It is never null.
  PackedObject(const Object& object, std::string its_bytes, Unpack reader)
      : Object(object), bytes(std::move(its_bytes)), unpack(reader) {}

  const std::string bytes;
  const Unpack unpack;
};

// The object as its kind's decoder made it. Costs about a microsecond for a packed one.
inline ObjectPtr whole(ObjectPtr object) {
  const auto* const packed = dynamic_cast<const PackedObject*>(object.get());
  return packed ? packed->unpack(*packed) : object;
}

}  // namespace holdfast::kube
