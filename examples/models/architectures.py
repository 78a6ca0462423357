"""The parameters of the model families of shapes.json, under the names of their Hugging Face checkpoints.

The routed experts of a layer are one parameter [experts, out, in], as trainers hold them. `fused` makes one
parameter of queries, keys and values, and one of gate and up, divided into blocks; `flat` makes experts a
matrix [experts · out, in] with a block for each expert and projection, as xtuner holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """`cut`: what tensor parallelism cuts of the matrix: its rows, its columns, or nothing (None)."""

    name: str
    shape: tuple[int, ...]
    cut: str | None = None
    experts: int = 0  # so many in this parameter
    blocks: dict | None = None
    trained: bool = True

    @property
    def stacked(self) -> bool:
        return self.experts > 0 and len(self.shape) == 3


@dataclass(frozen=True)
class Family:
    """One model, and how its trainer holds fused weights and experts."""

    config: dict
    fused: bool = False
    flat: bool = False

    def matrix(self, name: str, rows: int, columns: int, cut: str | None) -> Parameter:
        return Parameter(f"{name}.weight", (rows, columns), cut)

    def gated(self, prefix: str, width: int) -> Iterator[Parameter]:
        hidden = self.config["hidden_size"]
        if self.fused:
            blocks = {"axis": "rows", "sizes": [width, width]}
            yield Parameter(f"{prefix}.gate_up_proj.weight", (2 * width, hidden), "rows", blocks=blocks)
        else:
            yield self.matrix(f"{prefix}.gate_proj", width, hidden, "rows")
            yield self.matrix(f"{prefix}.up_proj", width, hidden, "rows")
        yield self.matrix(f"{prefix}.down_proj", hidden, width, "columns")

    def experts(self, prefix: str, count: int, width: int) -> Iterator[Parameter]:
        hidden = self.config["hidden_size"]
        for name, projections, rows, columns, cut in self.projections(width, hidden):
            if self.flat:
                blocks = {"axis": "rows", "sizes": [rows] * (count * projections)}
                shape = (count * projections * rows, columns)
                yield Parameter(f"{prefix}.{name}.weight", shape, cut, count, blocks)
            else:
                blocks = {"axis": "rows", "sizes": [rows] * projections} if projections > 1 else None
                yield Parameter(
                    f"{prefix}.{name}.weight", (count, projections * rows, columns), cut, count, blocks
                )

    def projections(self, width: int, hidden: int) -> Iterator[tuple[str, int, int, int, str]]:
        if self.fused:
            yield "gate_up_proj", 2, width, hidden, "rows"
        else:
            yield "gate_proj", 1, width, hidden, "rows"
            yield "up_proj", 1, width, hidden, "rows"
        yield "down_proj", 1, hidden, width, "columns"

    def heads(self, prefix: str, gates: int = 1) -> Iterator[Parameter]:
        """Grouped-query attention; fused, a group's queries stand before its keys and values, as in
        Megatron.
        """
        c = self.config
        hidden, size, groups = c["hidden_size"], c["head_dim"], c["num_key_value_heads"]
        queries = gates * c["num_attention_heads"] * size
        if self.fused:
            blocks = {"axis": "rows", "sizes": [queries // groups, size, size], "repeat": groups}
            yield Parameter(
                f"{prefix}.qkv_proj.weight", (queries + 2 * groups * size, hidden), "rows", blocks=blocks
            )
        else:
            yield self.matrix(f"{prefix}.q_proj", queries, hidden, "rows")
            yield self.matrix(f"{prefix}.k_proj", groups * size, hidden, "rows")
            yield self.matrix(f"{prefix}.v_proj", groups * size, hidden, "rows")
        yield self.matrix(f"{prefix}.o_proj", hidden, c["num_attention_heads"] * size, "columns")

    def attention(self, layer: str, index: int) -> Iterator[Parameter]:
        yield from self.heads(f"{layer}.self_attn")

    def mlp(self, layer: str, index: int) -> Iterator[Parameter]:
        yield from self.gated(f"{layer}.mlp", self.config["intermediate_size"])

    def parameters(self) -> Iterator[Parameter]:
        vocabulary, hidden = self.config["vocab_size"], self.config["hidden_size"]
        yield self.matrix("model.embed_tokens", vocabulary, hidden, "rows")
        for index in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{index}"
            yield from self.attention(layer, index)
            yield from self.mlp(layer, index)
            yield Parameter(f"{layer}.input_layernorm.weight", (hidden,))
            yield Parameter(f"{layer}.post_attention_layernorm.weight", (hidden,))
        yield Parameter("model.norm.weight", (hidden,))
        yield self.matrix("lm_head", vocabulary, hidden, "rows")


class Qwen3(Family):
    def attention(self, layer: str, index: int) -> Iterator[Parameter]:
        yield from self.heads(f"{layer}.self_attn")
        for name in ("q_norm", "k_norm"):
            yield Parameter(f"{layer}.self_attn.{name}.weight", (self.config["head_dim"],))


class Qwen3Moe(Qwen3):
    def mlp(self, layer: str, index: int) -> Iterator[Parameter]:
        c = self.config
        yield self.matrix(f"{layer}.mlp.gate", c["num_experts"], c["hidden_size"], None)
        yield from self.experts(f"{layer}.mlp.experts", c["num_experts"], c["moe_intermediate_size"])


class Qwen35Moe(Qwen3Moe):
    """Every fourth layer has full attention with an output gate beside the queries, the others linear
    attention.
    """

    def attention(self, layer: str, index: int) -> Iterator[Parameter]:
        c = self.config
        if (index + 1) % c["full_attention_interval"] == 0:
            yield from self.heads(f"{layer}.self_attn", gates=2)
            for name in ("q_norm", "k_norm"):
                yield Parameter(f"{layer}.self_attn.{name}.weight", (c["head_dim"],))
            return
        prefix, hidden, heads = f"{layer}.linear_attn", c["hidden_size"], c["linear_num_value_heads"]
        values = heads * c["linear_value_head_dim"]
        mixed = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + values
        yield self.matrix(f"{prefix}.in_proj_qkv", mixed, hidden, "rows")
        yield self.matrix(f"{prefix}.in_proj_z", values, hidden, "rows")
        yield self.matrix(f"{prefix}.in_proj_b", heads, hidden, "rows")
        yield self.matrix(f"{prefix}.in_proj_a", heads, hidden, "rows")
        yield Parameter(f"{prefix}.conv1d.weight", (mixed, 1, c["linear_conv_kernel_dim"]), "rows")
        yield Parameter(f"{prefix}.A_log", (heads,), "rows")
        yield Parameter(f"{prefix}.dt_bias", (heads,), "rows")
        yield Parameter(f"{prefix}.norm.weight", (c["linear_value_head_dim"],))
        yield self.matrix(f"{prefix}.out_proj", hidden, values, "columns")

    def mlp(self, layer: str, index: int) -> Iterator[Parameter]:
        yield from super().mlp(layer, index)
        yield from self.gated(f"{layer}.mlp.shared_expert", self.config["shared_expert_intermediate_size"])
        yield self.matrix(f"{layer}.mlp.shared_expert_gate", 1, self.config["hidden_size"], None)


class DeepseekV3(Family):
    """Multi-head latent attention: queries, and keys with values, through a low rank of their own."""

    def attention(self, layer: str, index: int) -> Iterator[Parameter]:
        c, prefix, heads = self.config, f"{layer}.self_attn", self.config["num_attention_heads"]
        hidden, queries, keys = c["hidden_size"], c["q_lora_rank"], c["kv_lora_rank"]
        yield self.matrix(f"{prefix}.q_a_proj", queries, hidden, None)
        yield Parameter(f"{prefix}.q_a_layernorm.weight", (queries,))
        yield self.matrix(
            f"{prefix}.q_b_proj", heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"]), queries, "rows"
        )
        yield self.matrix(f"{prefix}.kv_a_proj_with_mqa", keys + c["qk_rope_head_dim"], hidden, None)
        yield Parameter(f"{prefix}.kv_a_layernorm.weight", (keys,))
        yield self.matrix(
            f"{prefix}.kv_b_proj", heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), keys, "rows"
        )
        yield self.matrix(f"{prefix}.o_proj", hidden, heads * c["v_head_dim"], "columns")

    def mlp(self, layer: str, index: int) -> Iterator[Parameter]:
        c = self.config
        if index < c["first_k_dense_replace"]:
            yield from super().mlp(layer, index)
            return
        experts, width = c["n_routed_experts"], c["moe_intermediate_size"]
        yield self.matrix(f"{layer}.mlp.gate", experts, c["hidden_size"], None)
        # Load balancing sets it between steps; it has no gradient.
        yield Parameter(f"{layer}.mlp.gate.e_score_correction_bias", (experts,), trained=False)
        yield from self.experts(f"{layer}.mlp.experts", experts, width)
        yield from self.gated(f"{layer}.mlp.shared_experts", c["n_shared_experts"] * width)


FAMILIES = {"llama": Family, "qwen3": Qwen3, "qwen3_moe": Qwen3Moe, "qwen3_5_moe": Qwen35Moe,
            "deepseek_v3": DeepseekV3}  # fmt: skip
