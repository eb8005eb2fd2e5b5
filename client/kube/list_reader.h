// Reads a list's body as it arrives: each item is decoded once it is complete, so that no more of
// the text than one item is held, however long the list.
//
//   ListReader reader(kind);
//   while (...) reader.read(piece);
//   Result<ListPage> page = reader.finish();
//
// Pure, and for one thread at a time. What is malformed gives an Error.
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
  // Of an item, and of all that is no item. The API server keeps no object that is larger.
  static constexpr std::size_t kMaxBytes = 16u << 20;

  explicit ListReader(std::shared_ptr<const Kind> kind) : kind_(std::move(kind)) {}

  bool read(std::string_view piece) override;
  Result<ListPage> page();
  // The same, in std::any.
  std::any finish() override { return page(); }

 private:
  void open(char bracket, std::string_view before);
  // True: the bracket was an item's last.
  bool close();
  void keep(std::string_view text);
  void item_ended();
  bool is_after_items_key() const;

  const std::shared_ptr<const Kind> kind_;
  ListPage page_;
  std::size_t read_items_ = 0;
  std::optional<Error> error_;

  std::string frame_;  // the text without its items: a null stands for each
  std::string item_;   // the one that is being read
  int depth_ = 0;      // open brackets
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool in_items_ = false;
  bool in_item_ = false;
};

// A list that is there as a whole.
Result<ListPage> decode_list(const Kind& kind, std::string_view body);

}  // namespace holdfast::kube
