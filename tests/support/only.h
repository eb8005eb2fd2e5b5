// only(list): the element of a list that must have one. Another list fails the test, and says where.
#pragma once

#include <stdexcept>
#include <string>

namespace holdfast {

template <class List>
const typename List::value_type& only(const List& list, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  if (list.size() == 1) return list.front();
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) +
                           ": not one element, but " + std::to_string(list.size()));
}

}  // namespace holdfast
