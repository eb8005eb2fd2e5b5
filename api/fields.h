// One line for each field of the API. Beside each struct stands a visitor that names its fields:
//
//   template <class Io, Is<QueueRef> X>
//   constexpr void fields(Io& io, X& queue) {
//     io("name", queue.name, {.at_rest = true});
//     io("priority", queue.priority, {.at_rest = true});
//     io("key", queue.key, {.at_rest = true});
//   }
//   static_assert(names_all<QueueRef>());
//
// An Io does the same with each field: JsonIn reads it, JsonOut writes it, AtRest packs and unpacks
// it. It has these operations:
//
//   io(name, member, rule)            a field, and the member that holds it
//   io(name, member, rule, Read{f})   the same, but f(object) reads it
//   io(name, member, rule, When{f})   the same, but it is left out while f() is false
//   io(name, flag, rule, Words{})     a flag that has two words in the API
//   io.truth(name, holds, unknown)    a field that says True, False or Unknown
//   io.by_codec(name, member, rule)   the codec reads and writes it, as it depends on other fields
//   io.other(name)                    a field that no member holds: it is passed on, or counted
//   io.own(member, rule)              a member that no field holds; with Read{f}: f(object) sets it
//   io.all_of(member)                 the fields of this struct stand among these
//
// A visitor has no branches and reads no member: the compiler runs it to count what it names. A
// member that it does not name does not compile, and tests/unit/api compares the names with those
// of the CRDs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace holdfast::api {

// What holds for a field beyond the type of its member.
struct Rule {
  // Written even if it says nothing. Else these are left out: an empty text or list, false, and a
  // number that is neither above `least` nor above 0.
  bool required = false;
  // The cache keeps it of a finished job (operator/codecs/at_rest.h).
  bool at_rest = false;
  // A time has its fraction of a second. Else it is in whole seconds, as metav1.Time has them.
  bool fraction = false;
  // A number that is read is cut to these bounds: a stored object may be older than the schema.
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  // Texts are cut when they are read and written.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  // Of a list: what follows is not read.
  std::size_t entries = std::numeric_limits<std::size_t>::max();
  // The list is a member of an object: "rules" of podFailurePolicy.
  const char* inside = nullptr;
};

// f(const JsonView& object): the member's value.
template <class F>
struct Read {
  F from;
};
template <class F>
Read(F) -> Read<F>;

// f(): the field is written.
template <class F>
struct When {
  F is_written;
};
template <class F>
When(F) -> When<F>;

// Any other word says nothing.
struct Words {
  const char* no;
  const char* yes;
};

// A visitor takes its struct, constant or not.
template <class X, class Struct>
concept Is = std::same_as<std::remove_const_t<X>, Struct>;

namespace counting {

class Io {
 public:
  template <class Member, class... More>
  constexpr void operator()(const char*, Member&, const Rule& = {}, const More&...) {
    ++members_;
  }
  constexpr void truth(const char*, const bool&, const bool&, const Rule& = {}) { members_ += 2; }
  template <class Member>
  constexpr void by_codec(const char*, Member&, const Rule& = {}) {
    ++members_;
  }
  constexpr void other(const char*) {}
  template <class Member, class... More>
  constexpr void own(Member&, const Rule& = {}, const More&...) {
    ++members_;
  }
  template <class Member>
  constexpr void all_of(Member&) {
    ++members_;
  }

  constexpr std::size_t members() const { return members_; }

 private:
  std::size_t members_ = 0;
};

// Room for a struct that is never made: the visitor only refers to its members.
template <class Struct>
union Room {
  char nothing;
  Struct value;
  constexpr Room() : nothing() {}
  constexpr ~Room() {}
};

struct Anything {
  template <class T>
  operator T() const noexcept;
};

template <class Struct, class... Members>
consteval std::size_t members_of() {
  if constexpr (requires { Struct{Members{}..., Anything{}}; }) {
    return members_of<Struct, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

}  // namespace counting

// The visitor of this struct names each member once.
template <class Struct>
consteval bool names_all() {
  counting::Room<Struct> room;
  counting::Io io;
  fields(io, room.value);
  return io.members() == counting::members_of<Struct>();
}

}  // namespace holdfast::api
