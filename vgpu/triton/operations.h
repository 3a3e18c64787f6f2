// The operations that the virtual GPU runs. Each is a function that reads its operands from the
// machine and gives it the results; the files below say which ones there are.
//
//   arithmetic.cpp    whole numbers and floating point, element by element; comparisons
//   functions.cpp     exp, erf and other functions
//   libdevice.cpp     the functions of NVIDIA's library
//   conversions.cpp   from one type to another
//   shapes.cpp        constants, program numbers, ranges, broadcasting, transposing
//   reductions.cpp    tt.reduce, tt.scan, tt.histogram, tt.gather
//   products.cpp      tt.dot
//   accesses.cpp      loads and stores
//   atomics.cpp       atomic operations
//   control.cpp       loops, branches, calls, assertions
//   printing.cpp      tl.device_print
#pragma once

#include <span>
#include <string_view>

#include "vgpu/triton/machine.h"

namespace ferry::vgpu::triton {

struct Operation {
  std::string_view name;
  void (*run)(Machine&, const Op&);
};

std::span<const Operation> arithmetic();
std::span<const Operation> comparisons();
std::span<const Operation> functions();
std::span<const Operation> libdevice();
std::span<const Operation> conversions();
std::span<const Operation> shapes();
std::span<const Operation> reductions();
std::span<const Operation> products();
std::span<const Operation> accesses();
std::span<const Operation> atomics();
std::span<const Operation> control();
std::span<const Operation> printing();

// Returns null if the operation is not run.
void (*find_operation(std::string_view name))(Machine&, const Op&);
// Whether there is such a function of one floating-point number, as "exp"; and runs it, if so.
bool is_function(std::string_view name);
void run_function(Machine& machine, const Op& op, std::string_view name);
// Returns whether the virtual GPU has the libdevice function of that name, as "__nv_expf".
bool has_function(std::string_view symbol);
// Returns whether the operation ends a block.
bool is_terminator(std::string_view name);

// True where both are; a mask that does not exist is true everywhere.
Value both(Pool& pool, const Value& a, const Value& b);
Value negated(Pool& pool, const Value& mask);
bool any(const Value& mask);
bool all(const Value& mask);
// `a` where the mask is true, `b` elsewhere; nothing if one of them does not exist.
Value merged(Pool& pool, const Value& where, const Value& a, const Value& b);
// The value with axes of these lengths, which are its own or take the place of 1.
Value spread(Pool& pool, const Value& value, const Dims& dims);
// a + factor * b, without their elements, if each is a ramp or one number for each program, and one
// is a ramp; nothing otherwise. `factor` times an element of b fits 64 bits.
Value ramp_sum(Pool& pool, Elem elem, const Value& a, const Value& b, std::int64_t factor);
// The product of a ramp and one number; nothing if they are not that.
Value ramp_product(Pool& pool, const Value& a, const Value& b);
// A ramp with another axis of length 1.
Value ramp_expanded(Pool& pool, const Value& a, int axis);
// Where a ramp is below a number of each program; nothing if they are not that.
Value ramp_below(Pool& pool, const Value& a, const Value& b);
// The value with every axis at its full length, except perhaps the programs'.
Value whole(Pool& pool, const Value& value, const std::vector<std::int64_t>& shape);

}  // namespace ferry::vgpu::triton
