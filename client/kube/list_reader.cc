#include "client/kube/list_reader.h"

#include <utility>

#include "core/json.h"
#include "core/json_view.h"

namespace holdfast::kube {
namespace {

// The depth of the items' array, and of an item.
constexpr int kDepthOfList = 1;
constexpr int kDepthOfItems = 2;

std::string_view without_trailing_blanks(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last + 1);
}

}  // namespace

bool ListReader::read(std::string_view piece) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < piece.size() && !error_; ++i) {
    const char c = piece[i];
    if (in_string_) {
      in_string_ = c != '"' || is_escaped_;
      is_escaped_ = c == '\\' && !is_escaped_;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      open(c, piece.substr(kept, i - kept));
      kept = i;
    } else if ((c == '}' || c == ']') && close()) {
      keep(piece.substr(kept, i + 1 - kept));
      kept = i + 1;
      item_ended();
    }
  }
  if (!error_) keep(piece.substr(kept));
  return !error_;
}

void ListReader::open(char bracket, std::string_view before) {
  keep(before);
  if (!in_item_ && in_items_ && depth_ == kDepthOfItems) {
    frame_ += "null";
    in_item_ = true;
  } else if (depth_ == kDepthOfList && bracket == '[') {
    in_items_ = is_after_items_key();
  }
  if (++depth_ > kMaxJsonDepth) {
    error_ = make_error(ErrorCode::kTerminal, "JSON is nested too deeply");
  }
}

bool ListReader::close() {
  --depth_;
  if (!in_item_ && depth_ == kDepthOfList) in_items_ = false;
  return in_item_ && depth_ == kDepthOfItems;
}

void ListReader::keep(std::string_view text) {
  std::string& into = in_item_ ? item_ : frame_;
  if (into.size() + text.size() > kMaxBytes) {
    error_ = make_error(ErrorCode::kTerminal, "an item of the list is larger than " +
                                                  std::to_string(kMaxBytes) + " bytes");
    return;
  }
  into += text;
}

void ListReader::item_ended() {
  in_item_ = false;
  if (error_) return;
  const Result<JsonDocument> parsed = JsonDocument::parse(item_);
  item_.clear();
  if (!parsed.ok()) {
    error_ = parsed.error();
    return;
  }
  ++read_items_;
  if (ObjectPtr object = decode_object(*kind_, *parsed)) page_.items.push_back(std::move(object));
}

// The API server's keys contain no escapes. For another key with the same meaning, page() reports
// that its items were not read.
bool ListReader::is_after_items_key() const {
  static constexpr std::string_view kKey = "\"items\"";
  std::string_view text = without_trailing_blanks(frame_);
  if (!text.ends_with(':')) return false;
  text.remove_suffix(1);
  text = without_trailing_blanks(text);
  if (!text.ends_with(kKey)) return false;
  text.remove_suffix(kKey.size());
  return !text.ends_with('\\');
}

Result<ListPage> ListReader::page() {
  if (error_) return *error_;
  const Result<JsonDocument> parsed = JsonDocument::parse(frame_);
  if (!parsed.ok()) return parsed.error();
  const JsonView metadata = at(*parsed, "metadata");
  const JsonView items = at(*parsed, "items");
  if (!parse_version(string_at(metadata, "resourceVersion"), page_.version) ||
      !(items.is_array() || items.is_null()) || items.size() < read_items_) {
    return make_error(ErrorCode::kTransient, "the answer is not a list of " + kind_->name);
  }
  page_.continue_token = string_at(metadata, "continue");
  page_.undecodable = static_cast<int>(items.size() - page_.items.size());
  return std::move(page_);
}

Result<ListPage> decode_list(const Kind& kind, std::string_view body) {
  ListReader reader(std::make_shared<const Kind>(kind));
  reader.read(body);
  return reader.page();
}

}  // namespace holdfast::kube
