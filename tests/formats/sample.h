// A small program with every statement in it, in canonical text, and what throws on bad input says.
#pragma once

#include <sstream>
#include <string>

#include "formats/error.h"
#include "formats/program_check.h"
#include "formats/program_file.h"

namespace ferry::testing {

inline constexpr const char* kSample =
    R"({"ferry":"program","schema":1,"name":"sample","about":{"model":"two layers","batch":"8"}}
{"global":0,"kind":"parameter","name":"w","dtype":"bf16","shape":[64,64],"grad":true}
{"global":1,"kind":"parameter","name":"tied","dtype":"bf16","shape":[64,64],"strides":[1,64],"alias":0}
{"global":2,"kind":"input","name":"x","dtype":"bf16","shape":[64,64]}
{"code":0,"kind":"main"}
{"stream":1}
{"sync":[0,1]}
{"enter":"model"}
{"exclude":"begin"}
{"call":1,"in":[2],"out":[7],"recompute":"checkpoint","determinism_check":false}
{"exclude":"end"}
{"leave":"model"}
{"record_use":7,"stream":1}
{"backward":[7],"inputs":[0],"out":[9],"retain_graph":true,"create_graph":true}
{"move":0}
{"free":[7]}
{"when":"first","count":1}
{"raise":"boom"}
{"code":1,"kind":"segment","name":"forward","arguments":[5],"results":[8]}
{"view":6,"of":5,"dtype":"bf16","shape":[64,8],"strides":[64,1],"offset":8}
{"node":"MmBackward0","id":3,"in":[5,0],"out":[8],"saved":[5,0],"body":2}
{"op":"aten.mm","in":[5,0],"out":[{"slot":8,"dtype":"bf16","shape":[64,64]}],"flops":524288,"read":16384,"written":8192,"kernels":2,"matmul":[1,64,64,64],"aligned":8}
{"save":3,"slots":[8]}
{"ambient":1}
{"op":"aten.bernoulli_","in":[8],"out":[],"writes":[0],"random":true}
{"op":"aten.add_","in":[6,8],"out":[],"writes":[0],"ns":2000,"once":true}
{"code":2,"kind":"body","name":"MmBackward0","arguments":[9],"saved":[10,11,12],"results":[13,null]}
{"op":"aten.mm","in":[9,11],"out":[{"slot":13,"dtype":"bf16","shape":[64,64]}]}
)";

inline Program parse(const std::string& text) {
  std::istringstream in(text);
  Program program = read_program(in, "p.jsonl");
  check_program(program, "p.jsonl");
  return program;
}

// What is thrown, or "" where nothing is.
template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace ferry::testing
