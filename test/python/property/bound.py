"""An optimizer of one rank in this process, on NumPy's memory: what a trainer does by the C interface."""

import ctypes as c
import json

import numpy as np
from compiler import ROOT, stepc
from stepc import _abi
from stepc._library import Instance, Library

PARAMETER = {"dtype": "f32", "mesh": "one", "placements": ["R"]}
SHAPES = {"w": [24, 40], "v": [24, 40], "b": [40], "s": []}
HOST, DEVICE = 0, 1


def compiled(folder, *options, spec=ROOT / "examples" / "muon.optim", shapes=None, **variables):
    folder.mkdir(exist_ok=True)
    parameters = [{"name": name, "shape": shape, **PARAMETER} for name, shape in (shapes or SHAPES).items()]
    mesh = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    stepc("compile", spec, "-m", folder / "m.json", *options, "-o", folder / "out", **variables)
    return Library(folder / "out" / f"lib{spec.stem}.so")


class Bound:
    """An instance with all that it needs bound, drawn from a seed. `memory` is that of the steps and
    hyperparameters.
    """

    def __init__(self, library, memory=HOST, seed=0, **options):
        self.instance = Instance(library, **options)
        self.generator = np.random.default_rng(seed)
        self.parameters, self.states, self.gradients = {}, {}, {}
        for p in self.instance.parameters:
            self.parameters[p.name] = self.draw(p.local_shape)
            data = self.parameters[p.name]
            self.instance.bind_parameter(p.index, data.ctypes.data, data.nbytes)
            for number, state in enumerate(p.states):
                data = self.states[p.name, state.name] = np.full(state.local_shape, state.init, np.float32)
                self.instance.bind_state(p.index, number, data.ctypes.data, data.nbytes)
        self.steps = np.zeros(len(self.instance.parameters), np.int64)
        self.instance._call("bind_steps", self.steps.ctypes.data, memory)
        self.routes = {route.name: route for route in library.routes}
        self.names = [p.name for p in self.instance.parameters]
        most = max(len(route.defaults) for route in library.routes)
        # A group of hyperparameters per parameter.
        self.values = np.zeros((len(self.names), most))
        for p in self.instance.parameters:
            defaults = self.routes[p.route].defaults
            self.values[p.index, : len(defaults)] = list(defaults.values())
        groups = (c.c_int32 * len(self.names))(*range(len(self.names)))
        values = self.values.ctypes.data
        self.instance._call(
            "bind_hyperparameters", values, len(self.names), most, c.addressof(groups), memory
        )

    def draw(self, shape):
        return np.asarray(self.generator.normal(size=shape), np.float32)

    def new_gradients(self):
        """At other addresses than those before."""
        self.gradients = {p.name: self.draw(p.local_shape) for p in self.instance.parameters}
        pointers = (c.c_uint64 * len(self.names))(*(self.gradients[name].ctypes.data for name in self.names))
        self.instance.bind_gradients(pointers, len(self.names))

    def hyperparameter(self, name, hyperparameter, value):
        p = self.instance.parameters[self.names.index(name)]
        self.values[p.index, list(self.routes[p.route].defaults).index(hyperparameter)] = value

    def everything(self):
        """What a step may have written, as bytes."""
        tensors = {**self.parameters, **self.states, "steps": self.steps}
        return {key: value.tobytes() for key, value in tensors.items()}


def traced(bound, steps, change=None):
    """`steps` steps, with new gradients and a schedule; what there is after each."""
    found = []
    for step in range(steps):
        bound.new_gradients()
        for name in bound.names:
            bound.hyperparameter(name, "lr", 0.02 / (1 + step))
        if change:
            change(bound, step)
        bound.instance.step()
        found.append(bound.everything())
    return found


assert _abi.MEMORY_HOST == HOST
