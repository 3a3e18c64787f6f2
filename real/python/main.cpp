// The module torch_ferry._C: Ferry's core in a Python process. `import torch` must come before it.

#include <torch/csrc/utils/pybind.h>

#include "real/autograd/engine.h"
#include "real/python/checkpoint.h"
#include "real/python/errors.h"
#include "real/python/guards.h"
#include "real/python/pair.h"
#include "real/python/parameters.h"
#include "real/python/stream_log.h"
#include "real/python/wards.h"
#include "real/python/weights.h"

PYBIND11_MODULE(_C, module) {
  pybind11::module_::import("torch");  // this also installs Python's engine
  using namespace ferry::real;
  python::add_errors(module);
  python::prepare_pairs();
  python::prepare_parameters();
  python::add_offload(module);
  python::add_checkpoint(module);
  python::add_stream_log(module);
  python::add_wards(module);
  python::add_weights(module);
  install_engine();
}
