// The private module _core: the table of contents. Each face of the engine registers itself in a file of its
// own.

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace streamjoin::bindings {
void register_disorder(py::module_& module);
void register_kernels(py::module_& module);
void register_multi_operator(py::module_& module);
void register_operator(py::module_& module);
void register_payload(py::module_& module);
}  // namespace streamjoin::bindings

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native core of streamjoin. Private: use the package around it.";
  module.attr("__version__") = STREAMJOIN_VERSION;
  streamjoin::bindings::register_kernels(module);
  streamjoin::bindings::register_disorder(module);
  streamjoin::bindings::register_operator(module);
  streamjoin::bindings::register_multi_operator(module);
  streamjoin::bindings::register_payload(module);
}
