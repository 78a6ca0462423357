// Does without the interpreter what binding.py does in every step for every parameter. A table of bound
// records (record.h) finds the records in which something differs.

#include "record.h"

#include <cstdlib>
#include <exception>
#include <unordered_set>

#ifndef STEPC_STAMP
#error "expected STEPC_STAMP, which tells what this was built from: see build_extension.py"
#endif

namespace {

using namespace stepc;

/// A parameter of a group. The group does not own it, so its address is compared first. It may be read only
/// after a living object was found to have this address.
struct GroupMember {
  const PyObject *tensor;
  bool requiresGrad;
  /// Whether a record has this tensor. The record's own check then also checks requiresGrad.
  bool isRecord;
};

struct Group {
  Owned route;
  std::vector<GroupMember> members;
};

struct Table {
  // clang-format off
  PyObject_HEAD
      // clang-format on
      std::vector<std::optional<Record>> *records;
  std::vector<Group> *groups;
  /// The addresses that the library reads gradients from, by parameter.
  uint64_t *gradients;
  Py_ssize_t gradientCount;
  /// Owns `gradients`.
  Py_buffer memory;
  PyTypeObject *dtensor;
  /// The class of parameter groups (group.py): a dict whose entries may be read like a plain dict's.
  PyTypeObject *group;
};

/// Turns an exception of torch into Python's error, and returns null.
PyObject *raised(const std::exception &error) {
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, error.what());
  return nullptr;
}

/// Whether a record passes a test. False if there is no record or the test throws: Python checks those.
template <typename Test> bool holds(const std::optional<Record> &record, Test test) {
  try {
    return record && test(*record);
  } catch (const std::exception &) {
    PyErr_Clear();
    return false;
  }
}

/// Writes the address of a gradient for the library. Returns false if Python has to look at the gradient: it
/// has another type, shape, device or class, or is not contiguous. The address of an absent gradient is 0.
bool bindGradient(const Table &table, const Record &record) {
  std::optional<uint64_t> pointer = gradientOf(record, table.dtensor);
  if (pointer)
    table.gradients[record.index] = *pointer;
  return pointer.has_value();
}

PyObject *listOf(const std::vector<size_t> &numbers) {
  Owned result(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; result && i < numbers.size(); ++i) {
    PyObject *number = PyLong_FromSize_t(numbers[i]);
    if (!number)
      return nullptr;
    PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), number);
  }
  return result.release();
}

/// Runs `body` and turns C++ exceptions into Python's errors. Functions that Python calls must not throw.
template <typename Body> PyObject *guarded(Body body) {
  try {
    return body();
  } catch (const std::exception &error) {
    return raised(error);
  }
}

template <typename Test> PyObject *listUnless(const Table &table, Test test) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < table.records->size(); ++i)
    if (!holds((*table.records)[i], test))
      numbers.push_back(i);
  return listOf(numbers);
}

PyObject *differing(PyObject *self, PyObject *) {
  return guarded([&] {
    return listUnless(*reinterpret_cast<Table *>(self),
                      [](const Record &record) { return isBound(record); });
  });
}

PyObject *bindGradients(PyObject *self, PyObject *) {
  const Table &table = *reinterpret_cast<Table *>(self);
  return guarded([&] {
    return listUnless(table, [&](const Record &record) { return bindGradient(table, record); });
  });
}

/// Whether parameter groups have the members that were bound, and freeze the same ones. For tensors of
/// records the second is checked only if `askRecords`. False for groups of other types than torch makes.
bool haveMembers(const Table &table, PyObject *groups, bool askRecords) {
  if (!PyList_CheckExact(groups) ||
      static_cast<size_t>(PyList_GET_SIZE(groups)) != table.groups->size())
    return false;
  for (size_t i = 0; i < table.groups->size(); ++i) {
    const Group &bound = (*table.groups)[i];
    PyObject *group = PyList_GET_ITEM(groups, static_cast<Py_ssize_t>(i));
    if (!PyDict_CheckExact(group) && Py_TYPE(group) != table.group)
      return false;
    PyObject *params = PyDict_GetItemWithError(group, paramsName);
    PyObject *route = PyDict_GetItemWithError(group, routeName);
    if (!params || !PyList_CheckExact(params) || !route ||
        static_cast<size_t>(PyList_GET_SIZE(params)) != bound.members.size() ||
        PyObject_RichCompareBool(route, bound.route.get(), Py_EQ) != 1)
      return false;
    for (size_t j = 0; j < bound.members.size(); ++j) {
      const GroupMember &member = bound.members[j];
      PyObject *tensor = PyList_GET_ITEM(params, static_cast<Py_ssize_t>(j));
      if (tensor != member.tensor)
        return false;
      if (member.isRecord && !askRecords)
        continue;
      if (!isTensor(tensor) || requiresGrad(tensor) != member.requiresGrad)
        return false;
    }
  }
  return true;
}

PyObject *sameGroups(PyObject *self, PyObject *groups) {
  bool same = haveMembers(*reinterpret_cast<Table *>(self), groups, /*askRecords=*/true);
  PyErr_Clear();
  return PyBool_FromLong(same);
}

PyObject *lookAt(const Table &table, PyObject *groups) {
  bool same = haveMembers(table, groups, /*askRecords=*/false);
  PyErr_Clear();
  if (!same)
    Py_RETURN_NONE;
  std::vector<size_t> unusual;
  // Checks and binds one parameter after the other, while its data is in the cache.
  for (size_t i = 0; i < table.records->size(); ++i) {
    const std::optional<Record> &record = (*table.records)[i];
    if (!holds(record, [](const Record &one) { return isBound(one); }))
      Py_RETURN_NONE;
    if (!holds(record, [&](const Record &one) { return bindGradient(table, one); }))
      unusual.push_back(i);
  }
  return listOf(unusual);
}

PyObject *look(PyObject *self, PyObject *groups) {
  return guarded([&] { return lookAt(*reinterpret_cast<Table *>(self), groups); });
}

PyObject *rememberIn(Table &table, PyObject *signature) {
  std::unordered_set<const PyObject *> tensors;
  for (const std::optional<Record> &record : *table.records)
    if (record)
      tensors.insert(record->tensor);
  std::vector<Group> groups;
  for (Py_ssize_t i = 0; PyTuple_Check(signature) && i < PyTuple_GET_SIZE(signature); ++i) {
    PyObject *route, *members, *bound = PyTuple_GET_ITEM(signature, i);
    if (!PyArg_ParseTuple(bound, "OO!", &route, &PyTuple_Type, &members))
      return nullptr;
    Group group{Owned(Py_NewRef(route)), {}};
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(members); ++j) {
      long long id = PyLong_AsLongLong(PyTuple_GET_ITEM(members, j));
      auto *tensor = reinterpret_cast<const PyObject *>(std::abs(id));
      group.members.push_back({tensor, id > 0, tensors.count(tensor) != 0});
    }
    groups.push_back(std::move(group));
  }
  if (PyErr_Occurred())
    return nullptr;
  std::swap(*table.groups, groups);
  Py_RETURN_NONE;
}

PyObject *remember(PyObject *self, PyObject *signature) {
  return guarded([&] { return rememberIn(*reinterpret_cast<Table *>(self), signature); });
}

PyObject *stepped(PyObject *self, PyObject *) {
  try {
    for (std::optional<Record> &record : *reinterpret_cast<Table *>(self)->records) {
      if (!record)
        continue;
      Shard shard;
      if (Py_TYPE(record->tensor) == record->type)
        shard = shardOf(record->tensor, record->spec);
      if (!shard) {
        PyErr_SetString(PyExc_RuntimeError, "a bound parameter changed while it was stepped");
        return nullptr;
      }
      THPVariable_Unpack(record->tensor).unsafeGetTensorImpl()->bump_version();
      // Also for the shards of DTensors: an autograd graph may have saved what to_local() returned.
      if (record->spec)
        shard.tensor->unsafeGetTensorImpl()->bump_version();
      if (record->versions)
        record->versions = versionsOf(*record, *shard.tensor);
    }
  } catch (const std::exception &error) {
    return raised(error);
  }
  Py_RETURN_NONE;
}

std::optional<Record> &recordAt(Table &table, Py_ssize_t number) {
  TORCH_CHECK(number >= 0 && static_cast<size_t>(number) < table.records->size(),
              "expected a record's number, found ", number);
  return (*table.records)[number];
}

PyObject *release(PyObject *self, PyObject *argument) {
  Py_ssize_t number = PyLong_AsSsize_t(argument);
  if (number == -1 && PyErr_Occurred())
    return nullptr;
  try {
    std::optional<Record> &slot = recordAt(*reinterpret_cast<Table *>(self), number);
    // Moved out first, because destructors may run Python code that must not see a half destroyed slot.
    std::optional<Record> record = std::exchange(slot, std::nullopt);
    if (record && record->versions)
      return Py_BuildValue("II", record->versions->first, record->versions->second);
  } catch (const std::exception &error) {
    return raised(error);
  }
  Py_RETURN_NONE;
}

PyObject *set(PyObject *self, PyObject *arguments) {
  Table &table = *reinterpret_cast<Table *>(self);
  Py_ssize_t number;
  PyObject *description;
  if (!PyArg_ParseTuple(arguments, "nO!", &number, &PyTuple_Type, &description))
    return nullptr;
  try {
    std::optional<Record> record = describe(description, table.gradientCount, table.dtensor);
    if (PyErr_Occurred()) // an attribute could not be read
      return nullptr;
    bool known = record.has_value();
    std::swap(recordAt(table, number), record);
    return PyBool_FromLong(known);
  } catch (const std::exception &error) {
    return raised(error);
  }
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Table &table = *reinterpret_cast<Table *>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(table.dtensor);
  Py_VISIT(table.group);
  if (table.records)
    for (const std::optional<Record> &record : *table.records)
      if (record) {
        Py_VISIT(record->description.get());
        Py_VISIT(record->mesh.get());
        Py_VISIT(record->samePlacements.get());
      }
  if (table.groups)
    for (const Group &group : *table.groups)
      Py_VISIT(group.route.get());
  return 0;
}

int clear(PyObject *self) {
  Table &table = *reinterpret_cast<Table *>(self);
  if (table.records) {
    std::vector<std::optional<Record>> records(table.records->size());
    std::swap(records, *table.records);
  }
  if (table.groups)
    table.groups->clear();
  Py_CLEAR(table.dtensor);
  Py_CLEAR(table.group);
  return 0;
}

void deallocate(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  Table &table = *reinterpret_cast<Table *>(self);
  delete table.records;
  delete table.groups;
  if (table.memory.obj)
    PyBuffer_Release(&table.memory);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *create(PyTypeObject *type, PyObject *arguments, PyObject *) {
  Py_ssize_t count;
  PyObject *gradients, *dtensor, *group;
  if (!PyArg_ParseTuple(arguments, "nOO!O!", &count, &gradients, &PyType_Type, &dtensor,
                        &PyType_Type, &group))
    return nullptr;
  Owned self(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  Table &table = *reinterpret_cast<Table *>(self.get());
  try {
    table.records = new std::vector<std::optional<Record>>(count);
    table.groups = new std::vector<Group>();
  } catch (const std::exception &error) {
    return raised(error);
  }
  localSlot = findSlot(dtensor, "_local_tensor");
  specSlot = findSlot(dtensor, "_spec");
  table.dtensor = reinterpret_cast<PyTypeObject *>(Py_NewRef(dtensor));
  table.group = reinterpret_cast<PyTypeObject *>(Py_NewRef(group));
  if (PyObject_GetBuffer(gradients, &table.memory, PyBUF_WRITABLE) < 0)
    return nullptr;
  table.gradients = static_cast<uint64_t *>(table.memory.buf);
  table.gradientCount = table.memory.len / static_cast<Py_ssize_t>(sizeof(uint64_t));
  return self.release();
}

PyMethodDef tableMethods[] = {
    {"set", set, METH_VARARGS,
     "Takes a record as it is bound now; false where it cannot be looked at here."},
    {"release", release, METH_O, "Forgets a record, and gives its masters' versions."},
    {"differing", differing, METH_NOARGS, "Numbers of records that are not what was set."},
    {"bind_gradients", bindGradients, METH_NOARGS,
     "Writes addresses of gradients; the numbers of records whose gradient is unusual."},
    {"remember", remember, METH_O, "Takes the signature of parameter groups (groups.py)."},
    {"same_groups", sameGroups, METH_O, "Whether groups have the signature that is remembered."},
    {"look", look, METH_O,
     "All three at once: bind_gradients(), or None where groups or records differ."},
    {"stepped", stepped, METH_NOARGS, "Tells autograd that the parameters changed."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot tableSlots[] = {{Py_tp_new, reinterpret_cast<void *>(create)},
                            {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
                            {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                            {Py_tp_clear, reinterpret_cast<void *>(clear)},
                            {Py_tp_methods, tableMethods},
                            {0, nullptr}};

PyType_Spec tableSpec = {"stepc.torch._extension.Table", sizeof(Table), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, tableSlots};

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "stepc.torch._extension",
                      "The binding's work in every step, without the interpreter.",
                      -1,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

} // namespace

PyMODINIT_FUNC PyInit__extension() {
  for (auto [name, text] : {std::pair(&placementsName, "placements"), std::pair(&meshName, "mesh"),
                            std::pair(&stepName, "step"), std::pair(&paramsName, "params"),
                            std::pair(&routeName, "route")})
    if (!*name && !(*name = PyUnicode_InternFromString(text)))
      return nullptr;
  Owned result(PyModule_Create(&module)), type(PyType_FromSpec(&tableSpec));
  if (!result || !type || PyModule_AddObjectRef(result.get(), "Table", type.get()) < 0 ||
      PyModule_AddStringConstant(result.get(), "STAMP", STEPC_STAMP) < 0)
    return nullptr;
  return result.release();
}
