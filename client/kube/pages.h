// The pages of a list whose objects are looked at one after another, so they need not show one
// moment. A list that takes longer than the server keeps old versions goes on with what is there
// then. Pure.
//
//   kube::Pages pages(500);
//   while (!pages.done()) {
//     auto list = client.list(kind, ns, pages.query());
//     const Result<kube::ListPage> page = co_await list;
//     if (!page && pages.goes_on_after(page.error())) continue;
//     if (!page) co_return page.error();
//     ...
//     pages.took(*page);
//   }
#pragma once

#include <string>

#include "client/kube/object.h"
#include "core/result.h"

namespace holdfast::kube {

class Pages {
 public:
  explicit Pages(int limit) : limit_(limit) {}

  // Of the next page.
  std::string query() const;
  void took(const ListPage& page);
  // True: query() asks for the same page in another way. False: the error has to do with something
  // else, and the same query may succeed later.
  bool goes_on_after(const Error& error);
  bool done() const { return done_; }

 private:
  int limit_;
  std::string token_;
  bool done_ = false;
};

}  // namespace holdfast::kube
