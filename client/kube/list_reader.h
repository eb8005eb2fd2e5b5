// Reads a list's body as it arrives. Each item is decoded once it is complete, so the reader never
// holds more text than one item.
//
//   ListReader reader(kind);
//   while (...) reader.read(piece);
//   Result<ListPage> page = reader.finish();
//
// Pure, and for one thread at a time. Malformed text gives an Error.
#pragma once

#include <any>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/http/transport.h"
#include "client/kube/object.h"

namespace holdfast::kube {

class ListReader : public http::BodyReader {
 public:
  // The limit for one item, and for all text outside items. The API server stores no larger object.
  static constexpr std::size_t kMaxBytes = 16u << 20;

  explicit ListReader(std::shared_ptr<const Kind> kind) : kind_(std::move(kind)) {}

  bool read(std::string_view piece) override;
  Result<ListPage> page();
  // The same, in std::any.
  std::any finish() override { return page(); }

 private:
  void open(char bracket, std::string_view before);
  // True: the bracket ended an item.
  bool close();
  void keep(std::string_view text);
  void item_ended();
  bool is_after_items_key() const;

  const std::shared_ptr<const Kind> kind_;
  ListPage page_;
  std::size_t read_items_ = 0;
  std::optional<Error> error_;

  std::string frame_;  // the text with a null in place of each item
  std::string item_;   // the item that is being read
  int depth_ = 0;      // open brackets
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool in_items_ = false;
  bool in_item_ = false;
};

// Decodes a complete list.
Result<ListPage> decode_list(const Kind& kind, std::string_view body);

}  // namespace holdfast::kube
