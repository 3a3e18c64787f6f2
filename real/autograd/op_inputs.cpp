#include "real/autograd/op_inputs.h"

namespace ferry::real {
namespace {

c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& op);
template <auto member>
struct Opened {
  friend c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& op) {
    return op.*member;
  }
};
template struct Opened<&at::RecordFunction::inputs_>;

}  // namespace

c10::ArrayRef<const c10::IValue> op_inputs(const at::RecordFunction& op) { return inputs_of(op); }

}  // namespace ferry::real
