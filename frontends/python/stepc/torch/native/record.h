// A parameter as it was bound, and the checks in every step that nothing of it has changed.
//
// Nothing is decided in this file. Anything unusual (a subclass of tensors, an exception, a gradient
// placed elsewhere) counts as a difference. binding.py then checks the parameter again, and binds it
// or raises an error.

#pragma once

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

// structmember.h needs Python's own header first.
#include <structmember.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace stepc {

using Shape = c10::SmallVector<int64_t, 4>;
/// autograd's version counters of a tensor and of its shard. They are equal for a plain tensor.
using Versions = std::pair<uint32_t, uint32_t>;

/// Names of attributes and keys as interned Python strings, made once.
inline PyObject *placementsName, *meshName, *stepName, *paramsName, *routeName;

/// An owning reference to an object, or null.
class Owned {
public:
  explicit Owned(PyObject *object = nullptr) : object(object) {}
  Owned(Owned &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~Owned() { Py_XDECREF(object); }

  PyObject *get() const { return object; }
  PyObject *release() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object; }

private:
  PyObject *object;
};

inline bool isTensor(PyObject *object) {
  return THPVariable_CheckExact(object) ||
         PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject *>(THPVariableClass));
}

/// The offsets of the slots in which DTensors keep their shard and spec. 0 if unknown: Python then checks
/// DTensors.
inline Py_ssize_t localSlot, specSlot;

inline PyObject *slotOf(PyObject *object, Py_ssize_t slot) {
  return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + slot);
}

/// The offset, in objects of the class, of an attribute that is a slot; 0 for other attributes.
inline Py_ssize_t findSlot(PyObject *cls, const char *name) {
  Owned found(PyObject_GetAttrString(cls, name));
  PyErr_Clear();
  if (!found || Py_TYPE(found.get()) != &PyMemberDescr_Type)
    return 0;
  const PyMemberDef *member = reinterpret_cast<PyMemberDescrObject *>(found.get())->d_member;
  return member->type == T_OBJECT_EX ? member->offset : 0;
}

/// Whether memory, sizes and version can be read from the tensor itself, because no subclass overrides them.
inline bool isReadable(const at::Tensor &tensor) {
  return tensor.defined() && !tensor.key_set().has(c10::DispatchKey::Python) &&
         tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_inference();
}

/// The address that data_ptr() returns for a readable tensor. Null for a freed storage, whatever the offset.
inline void *addressOf(const at::Tensor &tensor) {
  const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  auto *data = static_cast<char *>(impl->unsafe_storage().mutable_data());
  if (!data || impl->is_empty())
    return nullptr;
  int64_t offset = impl->storage_offset();
  return offset ? data + impl->itemsize() * offset : data;
}

inline bool hasSizes(const at::Tensor &tensor, const Shape &shape) {
  at::IntArrayRef sizes = tensor.sizes();
  if (sizes.size() != shape.size())
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (sizes[i] != shape[i])
      return false;
  return true;
}

/// The memory of a bound tensor, with its type and shape.
struct Held {
  void *pointer;
  at::ScalarType dtype;
  Shape shape;
  /// The keys of a readable tensor. Any tensor with the same keys is also readable.
  c10::DispatchKeySet keys;

  explicit Held(const at::Tensor &shard)
      : pointer(addressOf(shard)), dtype(shard.scalar_type()), shape(shard.sizes()),
        keys(shard.key_set()) {}

  bool is(const at::Tensor &shard) const {
    return shard.key_set() == keys && shard.scalar_type() == dtype && hasSizes(shard, shape) &&
           addressOf(shard) == pointer;
  }
};

/// A state as it was bound.
struct BoundState {
  PyObject *name;
  PyObject *tensor;
  PyTypeObject *type;
  PyObject *spec;
  Held held;
};

/// A parameter as it was bound. `description` owns the objects, so they live as long as it does.
struct Record {
  Owned description;
  int64_t index;
  PyObject *tensor;
  PyTypeObject *type;
  /// Null for a plain tensor.
  PyObject *spec;
  Held held;
  /// Strides of a shard that is not contiguous and stepped as a copy.
  std::optional<Shape> strides;
  PyObject *stateDict;
  std::vector<BoundState> states;
  PyObject *step;
  Held stepHeld;
  at::ScalarType gradientType;
  at::Device gradientDevice;
  Shape gradientShape;
  /// The expected placements of a DTensor's gradient, and whether (`apart`) they are not the parameter's.
  PyObject *gradientPlacements;
  bool apart;
  /// The DTensor's mesh.
  Owned mesh;
  /// The last tuple that was found to equal `gradientPlacements`.
  mutable Owned samePlacements;
  /// If there are masters: the versions of the parameter with which they were compared.
  std::optional<Versions> versions;
};

/// A tensor's shard and, for a DTensor, its spec. The tensor's object owns both.
struct Shard {
  const at::Tensor *tensor = nullptr;
  PyObject *spec = nullptr;

  explicit operator bool() const { return tensor; }
};

/// The shard of a tensor. There is none if a DTensor was left half made.
inline Shard shardOf(PyObject *object, bool isDTensor) {
  if (!isDTensor)
    return {&THPVariable_Unpack(object), nullptr};
  PyObject *local = slotOf(object, localSlot), *spec = slotOf(object, specSlot);
  if (!local || !spec || !isTensor(local))
    return {};
  return {&THPVariable_Unpack(local), spec};
}

inline Versions versionsOf(const Record &record, const at::Tensor &shard) {
  return {THPVariable_Unpack(record.tensor)._version(), shard._version()};
}

/// The value of a name in a dict; null if there is none. A dict keeps the order in which it was filled, so
/// this is most often the entry at `position`, which is tried first.
inline PyObject *entry(PyObject *dict, Py_ssize_t &position, PyObject *name) {
  PyObject *key, *value;
  if (PyDict_Next(dict, &position, &key, &value) && key == name)
    return value;
  value = PyDict_GetItemWithError(dict, name);
  PyErr_Clear();
  return value;
}

/// Whether a state's tensor is as it was bound. It may have got other memory, another type or shape, or
/// another spec.
inline bool isBound(const BoundState &state) {
  if (Py_TYPE(state.tensor) != state.type)
    return false;
  Shard shard = shardOf(state.tensor, state.spec);
  return shard && shard.spec == state.spec && state.held.is(*shard.tensor) &&
         shard.tensor->is_contiguous();
}

/// The data of autograd about a tensor; null if there is none.
inline const torch::autograd::AutogradMeta *autogradOf(PyObject *tensor) {
  // torch makes no objects of other classes here.
  return static_cast<const torch::autograd::AutogradMeta *>(
      THPVariable_Unpack(tensor).unsafeGetTensorImpl()->autograd_meta());
}

inline bool requiresGrad(PyObject *tensor) {
  const torch::autograd::AutogradMeta *autograd = autogradOf(tensor);
  return autograd && (autograd->requires_grad_ || autograd->grad_fn_);
}

/// Whether parameter, states and step count are as they were bound, and the parameter is not frozen.
inline bool isBound(const Record &record) {
  if (Py_TYPE(record.tensor) != record.type || !requiresGrad(record.tensor))
    return false;
  Shard shard = shardOf(record.tensor, record.spec);
  if (!shard || shard.spec != record.spec || !record.held.is(*shard.tensor))
    return false;
  if (record.strides ? shard.tensor->strides() != *record.strides : !shard.tensor->is_contiguous())
    return false;
  Py_ssize_t position = 0;
  for (const BoundState &state : record.states)
    if (entry(record.stateDict, position, state.name) != state.tensor || !isBound(state))
      return false;
  if (entry(record.stateDict, position, stepName) != record.step ||
      !record.stepHeld.is(THPVariable_Unpack(record.step)))
    return false;
  return !record.versions || *record.versions == versionsOf(record, *shard.tensor);
}

/// Whether placements are equal and of the same classes, as same_placements() in placements.py.
inline bool samePlacements(PyObject *one, PyObject *other) {
  if (one == other)
    return true;
  if (!PyTuple_CheckExact(one) || !PyTuple_CheckExact(other) ||
      PyTuple_GET_SIZE(one) != PyTuple_GET_SIZE(other))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(one); ++i) {
    PyObject *a = PyTuple_GET_ITEM(one, i), *b = PyTuple_GET_ITEM(other, i);
    if (a == b)
      continue;
    if (Py_TYPE(a) != Py_TYPE(b) || PyObject_RichCompareBool(a, b, Py_EQ) != 1) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

/// Whether a gradient's spec has the mesh and placements that the record expects. Meshes are compared by
/// identity.
inline bool sameSpec(const Record &record, PyObject *spec) {
  if (spec == record.spec && !record.apart)
    return true;
  Owned placements(PyObject_GetAttr(spec, placementsName)), mesh(PyObject_GetAttr(spec, meshName));
  PyErr_Clear();
  if (!placements || !mesh || mesh.get() != record.mesh.get())
    return false;
  if (placements.get() == record.samePlacements.get())
    return true;
  if (!samePlacements(placements.get(), record.gradientPlacements))
    return false;
  record.samePlacements = std::move(placements);
  return true;
}

/// The address of this step's gradient, or 0 if it is absent. Nothing if it is unusual.
inline std::optional<uint64_t> gradientOf(const Record &record, PyTypeObject *dtensor) {
  const torch::autograd::AutogradMeta *autograd = autogradOf(record.tensor);
  // Python's `grad` warns about a tensor that is no leaf, so Python handles it.
  if (!autograd || autograd->grad_fn_)
    return std::nullopt;
  const at::Tensor &gradient = autograd->grad_;
  if (!gradient.defined())
    return 0;
  Shard shard{&gradient, nullptr};
  // The parameter owns the gradient, which owns the shard.
  if (record.spec) {
    Owned object(THPVariable_Wrap(gradient));
    if (!object || Py_TYPE(object.get()) != dtensor) {
      PyErr_Clear();
      return std::nullopt;
    }
    shard = shardOf(object.get(), true);
    if (!shard || !sameSpec(record, shard.spec))
      return std::nullopt;
  }
  const at::Tensor &found = *shard.tensor;
  if (found.key_set() != record.held.keys && !isReadable(found))
    return std::nullopt;
  if (found.scalar_type() != record.gradientType || found.device() != record.gradientDevice ||
      !hasSizes(found, record.gradientShape) || !found.is_contiguous())
    return std::nullopt;
  void *pointer = addressOf(found);
  // A gradient without an address would count as absent.
  if (!pointer && found.numel())
    return std::nullopt;
  return reinterpret_cast<uint64_t>(pointer);
}

inline Shape shapeOf(PyObject *tuple) {
  Shape shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
  if (PyErr_Occurred())
    throw python_error();
  return shape;
}

/// Makes a record from a description (record.py), with the tensors as they are now. Returns nothing if a
/// tensor cannot be checked here. Throws if the description is malformed.
inline std::optional<Record> describe(PyObject *description, Py_ssize_t parameters,
                                      PyTypeObject *dtensor) {
  Py_ssize_t index;
  PyObject *tensor, *spec, *stateDict, *states, *step, *dtype, *device, *shape, *placements,
      *strides, *versions;
  int apart;
  if (!PyArg_ParseTuple(description, "nO!OO!O!O!O!O!O!OpOO", &index, THPVariableClass, &tensor,
                        &spec, &PyDict_Type, &stateDict, &PyTuple_Type, &states, THPVariableClass,
                        &step, &THPDtypeType, &dtype, &THPDeviceType, &device, &PyTuple_Type,
                        &shape, &placements, &apart, &strides, &versions))
    throw python_error();
  TORCH_CHECK(index >= 0 && index < parameters, "expected a parameter's number, found ", index);
  bool isDTensor = spec != Py_None;
  if (isDTensor && (Py_TYPE(tensor) != dtensor || !localSlot || !specSlot))
    return std::nullopt;
  Shard shard = shardOf(tensor, isDTensor);
  if (!shard || !isReadable(*shard.tensor) || THPVariable_Unpack(tensor).is_inference() ||
      !isReadable(THPVariable_Unpack(step)))
    return std::nullopt;
  Record record{Owned(Py_NewRef(description)),
                index,
                tensor,
                Py_TYPE(tensor),
                isDTensor ? spec : nullptr,
                Held(*shard.tensor),
                std::nullopt,
                stateDict,
                {},
                step,
                Held(THPVariable_Unpack(step)),
                reinterpret_cast<THPDtype *>(dtype)->scalar_type,
                reinterpret_cast<THPDevice *>(device)->device,
                shapeOf(shape),
                placements,
                apart != 0,
                Owned(isDTensor ? PyObject_GetAttr(spec, meshName) : nullptr),
                Owned(),
                std::nullopt};
  if (PyTuple_Check(strides))
    record.strides = shapeOf(strides);
  if (PyTuple_Check(versions)) {
    Shape numbers = shapeOf(versions);
    record.versions = Versions(numbers[0], numbers[1]);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(states); ++i) {
    PyObject *name, *state, *stateSpec;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(states, i), "OO!O", &name, THPVariableClass, &state,
                          &stateSpec))
      throw python_error();
    if (isDTensor && Py_TYPE(state) != dtensor)
      return std::nullopt;
    Shard held = shardOf(state, isDTensor);
    if (!held || !isReadable(*held.tensor))
      return std::nullopt;
    record.states.push_back(
        {name, state, Py_TYPE(state), isDTensor ? stateSpec : nullptr, Held(*held.tensor)});
  }
  return record;
}

} // namespace stepc
