#include "operator/codecs/known_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "api/known_words.h"
#include "core/json.h"
#include "core/utf8.h"

namespace holdfast::codecs {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct KnownField {
  std::string_view name;
  // Its members, or those of its items: where they begin in the table, and how many. None: its
  // content is passed on as it is.
  std::size_t first;
  std::size_t count;
  // Of a number; of a list `most` is the limit of its length.
  std::int64_t least;
  std::int64_t most;
  std::string_view values;  // "|A|B|"; empty: any
};

#include "operator/codecs/crd_fields.inc"

struct Table {
  const KnownField* fields = nullptr;

  const KnownField* member(const KnownField& of, std::string_view name) const {
    const KnownField* const begin = fields + of.first;
    const KnownField* const end = begin + of.count;
    const KnownField* const found = std::lower_bound(
        begin, end, name,
        [](const KnownField& field, std::string_view wanted) { return field.name < wanted; });
    return found == end || found->name != name ? nullptr : found;
  }
  const KnownField& spec() const { return fields[1]; }
  const KnownField& status() const { return fields[2]; }
};

Table table_of(KnownKind kind) {
  switch (kind) {
    case KnownKind::kDurableJob:
      return {kDurableJobFields};
    case KnownKind::kJobQueue:
      return {kJobQueueFields};
    case KnownKind::kWorkerPool:
      return {kWorkerPoolFields};
  }
  return {};
}

bool is_word_of(const KnownField& field, const JsonView& value) {
  if (field.values.empty() || !value.is_string()) return true;
  return field.values.find("|" + std::string(value.string_or("")) + "|") != std::string_view::npos;
}

// ---- The spec.

class SpecReader {
 public:
  explicit SpecReader(Table table) : table_(table) {}

  std::string read(const JsonView& spec) {
    look(table_.spec(), spec, "spec");
    return std::move(names_);
  }

 private:
  void look(const KnownField& field, const JsonView& value, const std::string& path) {
    const bool fits = !value.is_number_integer() ||
                      (value.int_or(0) >= field.least && value.int_or(0) <= field.most);
    if (!is_word_of(field, value) || !fits) {
      return report(path + ": " + utf8_prefix(value.text(), kLongestValue));
    }
    if (value.is_array() && static_cast<std::int64_t>(value.size()) > field.most) {
      return report(path + ": " + std::to_string(value.size()) + " entries");
    }
    if (field.count == 0) return;
    std::size_t place = 0;
    for (const JsonView item : value) {
      look_inside(field, item, path + "[" + std::to_string(place++) + "]");
    }
    look_inside(field, value, path);
  }

  void look_inside(const KnownField& field, const JsonView& object, const std::string& path) {
    for_each_member(object, [&](std::string_view name, const JsonView& value) {
      const std::string inner = path + "." + utf8_prefix(std::string(name), kLongestValue);
      const KnownField* const known = table_.member(field, name);
      if (known) {
        look(*known, value, inner);
      } else {
        report(inner);
      }
    });
  }

  void report(const std::string& what) {
    constexpr std::string_view kMore = ", ...";
    if (names_.ends_with(kMore)) return;
    const std::string next = (names_.empty() ? "" : ", ") + what;
    const bool fits = names_.size() + next.size() + kMore.size() <= kUnknownNamesLimit;
    names_ += fits ? next : std::string(kMore);
  }

  static constexpr std::size_t kLongestValue = 64;
  Table table_;
  std::string names_;
};

// ---- The status.
//
// What is kept of an object: its members that are not known ("f"), its words that are not known
// with what they are taken for ("w"), its parts ("p"), and of its lists the entries by their keys
// ("l").

// The fields that distinguish the entries of a list. `waiting` is one thing with one reason.
std::vector<std::string> keys_of(std::string_view list) {
  if (list == "runs") return {"index", "attempt"};
  if (list == "history") return {"attempt"};
  if (list == "conditions") return {"type"};
  if (list == "outbox") return {"number"};
  if (list == "stages") return {"name"};
  if (list == "admitting") return {"uid", "attempt"};
  if (list == "waiting") return {"reason"};
  return {};
}

std::string key_of(std::string_view list, const JsonView& entry) {
  std::string key;
  for (const std::string& name : keys_of(list)) {
    const JsonView part = at(entry, name);
    key += (part.is_string() ? std::string(part.string_or("")) : part.text()) + "/";
  }
  return key;
}
std::string key_of(std::string_view list, const Json& entry) {
  std::string key;
  for (const std::string& name : keys_of(list)) {
    const Json& part = at(entry, name);
    key += (part.is_string() ? part.get<std::string>() : part.dump()) + "/";
  }
  return key;
}

// What the codec takes a word for.
std::string stand_in(std::string_view field, const JsonView& object) {
  if (field == "outcome") return to_string(api::kUnknownOutcome);
  if (field == "phase" && at(object, "name").is_string())
    return to_string(api::known_stage_phase(object));
  if (field == "phase") return to_string(api::known_phase(object));
  return "False";  // the status of a condition
}

class StatusReader {
 public:
  explicit StatusReader(Table table) : table_(table) {}

  std::string read(const JsonView& status) {
    if (!has_unknown(table_.status(), status)) return "";
    Json kept = Json::object();
    // The runs come last, because they are many, and their part goes with their attempts.
    read_object(table_.status(), status, "runs", kept);
    const JsonView runs = at(status, "runs");
    const KnownField* const field = table_.member(table_.status(), "runs");
    if (field && !runs.empty()) read_list(*field, runs, kept);
    return kept.empty() ? "" : kept.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  // Mostly it has none, and then nothing is built.
  bool has_unknown(const KnownField& field, const JsonView& value) const {
    if (!is_word_of(field, value)) return true;
    if (field.count == 0) return false;
    for (const JsonView item : value) {
      if (has_unknown(field, item)) return true;
    }
    // One pointer fits into a std::function without an allocation, and runs are many.
    struct Look {
      const StatusReader& reader;
      const KnownField& field;
      bool found = false;
    } look{*this, field};
    for_each_member(value, [&look](std::string_view name, const JsonView& inner) {
      if (look.found) return;
      const KnownField* const known = look.reader.table_.member(look.field, name);
      look.found = !known || look.reader.has_unknown(*known, inner);
    });
    return look.found;
  }

  void read_object(const KnownField& field, const JsonView& object, std::string_view but,
                   Json& kept) {
    for_each_member(object, [&](std::string_view name, const JsonView& value) {
      if (name == but) return;
      const KnownField* const known = table_.member(field, name);
      if (!known) {
        const std::string text = value.text();
        Result<Json> parsed = parse_json(text);
        if (parsed.ok() && take(name.size() + text.size()))
          kept["f"][std::string(name)] = std::move(*parsed);
      } else if (!is_word_of(*known, value)) {
        const std::string text(value.string_or(""));
        if (take(name.size() + text.size()))
          kept["w"][std::string(name)] = {text, stand_in(name, object)};
      } else if (known->count > 0 && value.is_array()) {
        read_list(*known, value, kept);
      } else if (known->count > 0) {
        Json part = Json::object();
        read_object(*known, value, "", part);
        if (part.empty()) return;
        part["k"] = key_of(name, value);
        kept["p"][std::string(name)] = std::move(part);
      }
    });
  }

  void read_list(const KnownField& field, const JsonView& list, Json& kept) {
    for (const JsonView entry : list) {
      if (!has_unknown(KnownField{"", field.first, field.count, kLeast, kMost, ""}, entry))
        continue;
      const std::string key = key_of(field.name, entry);
      Json part = Json::object();
      if (take(key.size())) read_object(field, entry, "", part);
      if (part.empty()) continue;
      part["k"] = key;
      kept["l"][std::string(field.name)].push_back(std::move(part));
    }
  }

  // The frame of a member, or of an entry, takes some bytes too.
  bool take(std::size_t bytes) {
    constexpr std::size_t kFrame = 24;
    if (bytes_ + bytes + kFrame > kUnknownStatusLimit) return false;
    bytes_ += bytes + kFrame;
    return true;
  }

  Table table_;
  std::size_t bytes_ = 0;
};

void put_back(const Json& kept, Json& object) {
  if (kept.contains("f")) {
    for (const auto& [name, value] : kept["f"].items()) {
      if (!object.contains(name)) object[name] = value;
    }
  }
  if (kept.contains("w")) {
    for (const auto& [name, word] : kept["w"].items()) {
      if (object.contains(name) && object[name] == word[1]) object[name] = word[0];
    }
  }
  if (kept.contains("p")) {
    for (const auto& [name, part] : kept["p"].items()) {
      if (object.contains(name) && object[name].is_object() &&
          part["k"] == key_of(name, object[name]))
        put_back(part, object[name]);
    }
  }
  if (!kept.contains("l")) return;
  for (const auto& [name, entries] : kept["l"].items()) {
    if (!object.contains(name)) continue;
    // Two entries of one key keep their order.
    std::multimap<std::string, Json*> found;
    for (Json& entry : object[name]) found.emplace(key_of(name, entry), &entry);
    for (const Json& part : entries) {
      const auto same = found.lower_bound(part["k"].get<std::string>());
      if (same == found.end() || same->first != part["k"]) continue;
      put_back(part, *same->second);
      found.erase(same);
    }
  }
}

}  // namespace

std::string unknown_in_spec(KnownKind kind, const JsonView& spec) {
  return SpecReader(table_of(kind)).read(spec);
}

std::string unknown_in_status(KnownKind kind, const JsonView& status) {
  return StatusReader(table_of(kind)).read(status);
}

void put_back_unknown(const std::string& unknown, Json& status) {
  if (unknown.empty()) return;
  const Result<Json> kept = parse_json(unknown);
  if (kept.ok()) put_back(*kept, status);
}

}  // namespace holdfast::codecs
