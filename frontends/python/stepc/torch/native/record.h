// A parameter as it is bound, and what is looked at in every step to see that it still is.
//
// Nothing is decided here. Whatever is unusual (a subclass of tensors, an exception, a gradient
// placed elsewhere) differs from what is bound; binding.py looks at that again, and binds it or
// finds the words for an error.

#pragma once

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace stepc {

using Shape = c10::SmallVector<int64_t, 4>;
/// What autograd counts: a tensor's version, and its shard's (of a plain tensor the same).
using Versions = std::pair<uint32_t, uint32_t>;

/// Names of attributes, made once.
inline PyObject *localName, *specName, *placementsName, *meshName, *stepName, *paramsName,
    *routeName;

/// A reference to an object, or none.
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

/// Whether memory, sizes and version are the tensor's own: no subclass answers for it.
inline bool isReadable(const at::Tensor &tensor) {
  return tensor.defined() && !tensor.key_set().has(c10::DispatchKey::Python) &&
         tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_inference();
}

/// What data_ptr() gives for a readable tensor, of a freed storage null whatever the offset.
inline void *addressOf(const at::Tensor &tensor) {
  const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  auto *data = static_cast<char *>(impl->unsafe_storage().mutable_data());
  if (!data || impl->is_empty())
    return nullptr;
  return data + impl->itemsize() * impl->storage_offset();
}

/// Memory that is bound, and what it holds.
struct Held {
  void *pointer;
  at::ScalarType dtype;
  Shape shape;
  /// Of a readable tensor; another with the same keys is readable, too.
  c10::DispatchKeySet keys;

  explicit Held(const at::Tensor &shard)
      : pointer(addressOf(shard)), dtype(shard.scalar_type()), shape(shard.sizes()),
        keys(shard.key_set()) {}

  bool is(const at::Tensor &shard) const {
    return shard.key_set() == keys && shard.scalar_type() == dtype &&
           std::ranges::equal(shard.sizes(), shape) && addressOf(shard) == pointer;
  }
};

/// A state as it is bound.
struct State {
  PyObject *name;
  PyObject *tensor;
  PyObject *spec;
  Held held;
};

/// A parameter as it is bound. Its objects live as long as `description`, which owns them.
struct Record {
  Owned description;
  int64_t index;
  PyObject *tensor;
  PyTypeObject *type;
  /// Null: a plain tensor.
  PyObject *spec;
  Held held;
  /// Strides of a shard that is not contiguous and stepped as a copy.
  std::optional<Shape> strides;
  PyObject *stateDict;
  std::vector<State> states;
  PyObject *step;
  void *stepPointer;
  at::ScalarType gradientType;
  at::Device gradientDevice;
  Shape gradientShape;
  /// Where gradients of a DTensor lie, and whether elsewhere than the parameter.
  PyObject *gradientPlacements;
  bool apart;
  /// With masters: what they were compared with.
  std::optional<Versions> versions;
  /// Cache lines that looking at it reads, found by the way. They are scattered over megabytes, and
  /// most of the time goes into waiting for them; so they are asked for some records ahead.
  c10::SmallVector<const void *, 32> lines;

  void prefetch() const {
    for (const void *line : lines)
      __builtin_prefetch(line);
  }
};

/// An attribute, or null without an exception.
inline Owned attribute(PyObject *object, PyObject *name) {
  Owned found(PyObject_GetAttr(object, name));
  if (!found)
    PyErr_Clear();
  return found;
}

/// A tensor's shard and, of a DTensor, the spec. A null `tensor`: it has none.
struct Shard {
  const at::Tensor *tensor = nullptr;
  Owned owner;
  Owned spec;
};

inline Shard shardOf(PyObject *object, bool isDTensor) {
  Shard shard;
  if (isDTensor) {
    shard.owner = attribute(object, localName);
    shard.spec = attribute(object, specName);
    if (!shard.owner || !shard.spec)
      return shard;
    object = shard.owner.get();
  }
  if (!isTensor(object))
    return shard;
  shard.tensor = &THPVariable_Unpack(object);
  return shard;
}

inline Versions versionsOf(const Record &record, const at::Tensor &shard) {
  return {THPVariable_Unpack(record.tensor)._version(), shard._version()};
}

/// What a dict has under a name. It keeps the order in which it was filled, so that this is most often
/// the entry at `position`.
inline PyObject *entry(PyObject *dict, Py_ssize_t &position, PyObject *name) {
  PyObject *key, *value;
  if (PyDict_Next(dict, &position, &key, &value) && key == name)
    return value;
  value = PyDict_GetItemWithError(dict, name);
  PyErr_Clear();
  return value;
}

/// Whether a state's tensor is what is bound: it may have got other memory, or its memory another
/// meaning.
inline bool isBound(const State &state) {
  Shard shard = shardOf(state.tensor, state.spec);
  return shard.tensor && shard.spec.get() == state.spec && state.held.is(*shard.tensor) &&
         shard.tensor->is_contiguous();
}

/// Whether parameter, states and step count are what is bound, and the parameter not frozen.
inline bool isBound(const Record &record) {
  if (Py_TYPE(record.tensor) != record.type || !THPVariable_Unpack(record.tensor).requires_grad())
    return false;
  Shard shard = shardOf(record.tensor, record.spec);
  if (!shard.tensor || shard.spec.get() != record.spec || !record.held.is(*shard.tensor))
    return false;
  if (record.strides ? shard.tensor->strides() != *record.strides : !shard.tensor->is_contiguous())
    return false;
  Py_ssize_t position = 0;
  for (const State &state : record.states)
    if (entry(record.stateDict, position, state.name) != state.tensor || !isBound(state))
      return false;
  if (entry(record.stateDict, position, stepName) != record.step ||
      THPVariable_Unpack(record.step).data_ptr() != record.stepPointer)
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

/// Whether a gradient lies where the record's are expected. Meshes are compared as objects.
inline bool sameSpec(const Record &record, PyObject *spec) {
  if (spec == record.spec && !record.apart)
    return true;
  Owned placements = attribute(spec, placementsName);
  if (!placements || !samePlacements(placements.get(), record.gradientPlacements))
    return false;
  Owned mesh = attribute(spec, meshName), own = attribute(record.spec, meshName);
  return mesh && mesh.get() == own.get();
}

/// The address of this step's gradient, 0 where it is absent; nothing where it is unusual.
inline std::optional<uint64_t> gradientOf(const Record &record, PyTypeObject *dtensor) {
  const at::Tensor &parameter = THPVariable_Unpack(record.tensor);
  const at::Tensor &gradient = parameter.unsafeGetTensorImpl()->grad();
  if (!gradient.defined())
    // For a tensor that is no leaf Python's `grad` has a warning.
    return parameter.is_leaf() ? std::optional<uint64_t>(0) : std::nullopt;
  Shard shard;
  if (record.spec) {
    Owned object(THPVariable_Wrap(gradient));
    if (!object || !PyObject_TypeCheck(object.get(), dtensor)) {
      PyErr_Clear();
      return std::nullopt;
    }
    // The parameter owns the gradient, which owns the shard.
    shard = shardOf(object.get(), true);
    if (!shard.tensor || !sameSpec(record, shard.spec.get()))
      return std::nullopt;
  } else {
    shard.tensor = &gradient;
  }
  const at::Tensor &found = *shard.tensor;
  if (found.key_set() != record.held.keys && !isReadable(found))
    return std::nullopt;
  if (found.scalar_type() != record.gradientType || found.device() != record.gradientDevice ||
      !std::ranges::equal(found.sizes(), record.gradientShape) || !found.is_contiguous())
    return std::nullopt;
  void *pointer = addressOf(found);
  // Without an address it would pass for absent.
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

/// Notes what looking at a tensor reads.
inline void addLines(Record &record, PyObject *object, const at::Tensor &tensor) {
  const auto *impl = reinterpret_cast<const char *>(tensor.unsafeGetTensorImpl());
  record.lines.push_back(object);
  for (size_t offset = 0; offset < sizeof(c10::TensorImpl); offset += 64)
    record.lines.push_back(impl + offset);
  if (tensor.has_storage())
    record.lines.push_back(tensor.storage().unsafeGetStorageImpl());
}

/// A record of what `description` says, read from the tensors as they are now.
inline std::optional<Record> describe(PyObject *description, Py_ssize_t parameters) {
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
  Shard shard = shardOf(tensor, isDTensor);
  if (!shard.tensor || !isReadable(*shard.tensor) || THPVariable_Unpack(tensor).is_inference() ||
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
                THPVariable_Unpack(step).data_ptr(),
                reinterpret_cast<THPDtype *>(dtype)->scalar_type,
                reinterpret_cast<THPDevice *>(device)->device,
                shapeOf(shape),
                placements,
                apart != 0,
                std::nullopt,
                {}};
  record.lines = {stateDict, reinterpret_cast<PyDictObject *>(stateDict)->ma_keys,
                  reinterpret_cast<char *>(reinterpret_cast<PyDictObject *>(stateDict)->ma_keys) +
                      64,
                  shard.tensor->unsafeGetTensorImpl()->autograd_meta()};
  addLines(record, tensor, *shard.tensor);
  addLines(record, step, THPVariable_Unpack(step));
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
    Shard held = shardOf(state, isDTensor);
    if (!held.tensor || !isReadable(*held.tensor))
      return std::nullopt;
    addLines(record, state, *held.tensor);
    record.states.push_back({name, state, isDTensor ? stateSpec : nullptr, Held(*held.tensor)});
  }
  return record;
}

} // namespace stepc
