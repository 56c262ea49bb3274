#pragma once

#include <string>

namespace naive_client {

/// Why something is refused, as an HTTP status, a word for programs, and a sentence.
struct Refusal {
  int status = 400;
  std::string code;
  std::string reason;
};

}  // namespace naive_client
