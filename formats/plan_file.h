// The plan file: a JSON object, schema 1, with one entry on each line so that people can read and
// diff it.
//
//   {
//     "ferry": "plan",
//     "schema": 1,
//     "program": {"name":"gpt2","digest":"0123456789abcdef"},
//     "hardware": "rtx4090",
//     "policy": "offload-prefix",
//     "options": {"min_bytes":1048576},
//     "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
//     "segments": [
//       {"name":"h.0","recompute":true}
//     ],
//     "entries": [
//       {"pack":0,"op":"checkpoint","dtype":"bf16","shape":[2],"strides":[1],"group":0,"decision":"keep"},
//       {"pack":0,"op":"MmBackward0","dtype":"bf16","shape":[2],"strides":[1],"group":0,"decision":"recompute","segment":0}
//     ]
//   }
//
// A plan for other allocator options than the defaults has these after its policy, as in
// PYTORCH_CUDA_ALLOC_CONF: "alloc_conf": "expandable_segments:True".
//
// A plan that recomputes spans of operators has spans instead of segments. Its entries are the
// saved tensors that the spans do not recompute, and the tensors from which the spans start:
//
//     "spans": [
//       {"first":3,"first_op":"aten.gelu","last":5,"last_op":"aten.mm","keep":[5]}
//     ],
//
// A span with other spans inside it has these as "inner", a list of spans that can nest again.
//
// Bytes and nanoseconds are integers. A plan that recomputes nothing has no "segments". An entry
// with a "segment" is a pack of that segment; only such entries can be recomputed. These are errors
// with file and line: malformed JSON, a missing or duplicate key, a wrong type, packs of the
// forward or of a segment that do not count up from 0, an entry of a segment that is not
// recomputed, two decisions for one group (except recomputed entries), spans that overlap, are out
// of order, are larger than the span around them or are nested too deep, and spans together with
// segments. The file is written completely or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "formats/plan.h"

namespace ferry {

std::string to_text(const Plan& plan);
void write_plan(const std::filesystem::path& path, const Plan& plan);

Plan parse_plan(std::string_view text, const std::string& file);
Plan read_plan(const std::filesystem::path& path);

std::string_view name(PlanChoice choice);

}  // namespace ferry
