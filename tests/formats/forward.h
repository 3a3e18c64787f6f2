// Programs by the statements of their forward, after one header and two globals: the parameter is
// slot 0, the input slot 1, and code 2 a body with one gradient, one saved tensor and one result.
#pragma once

#include <string>
#include <vector>

#include "tests/formats/sample.h"

namespace ferry::testing {

inline const std::string kHead = R"({"ferry":"program","schema":1,"name":"p"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4],"grad":true}
{"global":1,"kind":"input","name":"x","dtype":"f32","shape":[4]}
{"code":0,"kind":"main"}
{"call":1,"in":[],"out":[2]}
)";
inline const std::string kBody =
    R"({"code":2,"kind":"body","name":"B","arguments":[2],"saved":[3],"results":[2]})"
    "\n";

using Lines = std::vector<std::string>;

inline std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline Program program(const Lines& forward, const std::string& results = "[2]") {
  return parse(kHead + R"({"code":1,"kind":"segment","name":"f","arguments":[],"results":)" +
               results + "}\n" + joined(forward) + kBody);
}

inline std::string op(const std::string& in, const std::string& out) {
  return R"({"op":"a","in":[)" + in + R"(],"out":[{"slot":)" + out +
         R"(,"dtype":"f32","shape":[4]}]})";
}
inline std::string node(const std::string& in, const std::string& out, const std::string& saved) {
  return R"({"node":"N","id":0,"in":[)" + in + R"(],"out":[)" + out + R"(],"saved":[)" + saved +
         R"(],"body":2})";
}
inline std::string enter(const std::string& name) { return "{\"enter\":\"" + name + "\"}"; }
inline std::string leave(const std::string& name) { return "{\"leave\":\"" + name + "\"}"; }

}  // namespace ferry::testing
