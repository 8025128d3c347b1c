"""A Qwen2 or Llama decoder with low-rank changes and heads at the ends of lines, in plain torch, for teaching."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from norm_core.engines.reader.reader_setup import PARTS, DecoderShape
from norm_core.engines.talk_reader import HEAD_OUTPUTS, TURN_OUTPUTS

# The places of two outputs of a line: people hold it against the machine, people find it notably good.
HELD, GOOD = TURN_OUTPUTS - 2, TURN_OUTPUTS - 1


class LowRankLinear(nn.Module):  # type: ignore[misc]
    """A fixed matrix, and a taught change of low rank."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int) -> None:
        """Start with no change."""
        super().__init__()
        out, inputs = weight.shape
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self.lora_a = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.lora_b = nn.Parameter(torch.zeros(out, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the matrix and its change."""
        base = functional.linear(x, self.weight, self.bias)
        return base + functional.linear(functional.linear(x, self.lora_a), self.lora_b)


class Layer(nn.Module):  # type: ignore[misc]
    """One layer of the decoder."""

    def __init__(self, shape: DecoderShape, tensors: Callable[[str], Tensor | None], number: int, rank: int) -> None:
        """Load a layer's weights."""
        super().__init__()
        self.shape = shape
        self.linears = nn.ModuleDict()
        for name, stored in PARTS.items():
            weight = tensors(f"blk.{number}.{stored}.weight")
            assert weight is not None, stored
            self.linears[name] = LowRankLinear(weight, tensors(f"blk.{number}.{stored}.bias"), rank)
        norms = [tensors(f"blk.{number}.{name}_norm.weight") for name in ("attn", "ffn")]
        self.norms = nn.ParameterList([nn.Parameter(norm, requires_grad=False) for norm in norms if norm is not None])

    def forward(self, x: Tensor, turning: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Read a batch of rows; `mask` says what each token sees."""
        rows, length, _ = x.shape
        normed = functional.rms_norm(x, (self.shape.width,), self.norms[0].to(x.dtype), self.shape.epsilon)
        q, k, v = (
            self.linears[name](normed).view(rows, length, -1, self.shape.head_width).transpose(1, 2)
            for name in ("q", "k", "v")
        )
        repeat = self.shape.heads // self.shape.key_heads
        attended = functional.scaled_dot_product_attention(
            _turn(q, turning),
            _turn(k, turning).repeat_interleave(repeat, 1),
            v.repeat_interleave(repeat, 1),
            attn_mask=mask,
        )
        x = x + self.linears["o"](attended.transpose(1, 2).reshape(rows, length, -1))
        normed = functional.rms_norm(x, (self.shape.width,), self.norms[1].to(x.dtype), self.shape.epsilon)
        inner = functional.silu(self.linears["gate"](normed)) * self.linears["up"](normed)
        return x + self.linears["down"](inner)


class ReaderModel(nn.Module):  # type: ignore[misc]
    """The decoder and its heads."""

    def __init__(self, shape: DecoderShape, tensors: Callable[[str], Tensor | None], rank: int) -> None:
        """Load all weights; `tensors` returns a tensor by its name in the GGUF, or None if it is absent."""
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList([Layer(shape, tensors, number, rank) for number in range(shape.layers)])
        norm = tensors("output_norm.weight")
        assert norm is not None
        self.norm = nn.Parameter(norm, requires_grad=False)
        self.head = nn.Linear(shape.width, HEAD_OUTPUTS)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def taught(self) -> dict[str, nn.Parameter]:
        """Return the parameters that are taught, by name."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}

    def forward(
        self, embedded: Tensor, places: Tensor, talk: Tensor, option: Tensor, ends: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Return the outputs at the ends of lines, which are given as rows and columns.

        `places` is each token's place in its talk; `talk` tells talks in a row apart, and `option` what is read side by
        side in one: no token sees another option, and all see what has none (0).
        """
        length = embedded.shape[1]
        before = torch.ones(length, length, dtype=torch.bool, device=embedded.device).tril()
        seen = (option[:, None, :] == 0) | (option[:, :, None] == option[:, None, :])
        mask = (before & seen & (talk[:, :, None] == talk[:, None, :]))[:, None]
        turning = _angles(places, self.shape, embedded.dtype)
        x = embedded
        for layer in self.layers:
            x = layer(x, turning, mask)
        last = functional.rms_norm(x[ends].float(), (self.shape.width,), self.norm.float(), self.shape.epsilon)
        with torch.autocast(embedded.device.type, enabled=False):
            outputs: Tensor = self.head(last)
        return outputs


def _angles(places: Tensor, shape: DecoderShape, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    half = torch.arange(0, shape.head_width, 2, device=places.device, dtype=torch.float32)
    angles = places[:, None, :, None].float() * shape.rope_base ** (-half / shape.head_width)
    both = torch.cat([angles, angles], -1)
    return both.cos().to(kind), both.sin().to(kind)


def _turn(x: Tensor, turning: tuple[Tensor, Tensor]) -> Tensor:
    half, other = x.chunk(2, -1)
    return x * turning[0] + torch.cat([-other, half], -1) * turning[1]
