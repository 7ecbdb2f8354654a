"""What a warp does in the main loop of a CUDA kernel, from its machine code.

The loop is run twice by a model of a scheduler that issues in order: an instruction starts when its operands are ready.
The second run counts, so that what one pass waits for from the one before is in it.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FUNCTION = re.compile(r"^\s*Function : (\w+)", re.MULTILINE)
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?(U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
REGISTER = re.compile(r"\b(UR|UP|R|P)(\d+)\b")
# Cycles until the result of an instruction is there, and those for which a warp occupies its unit, compute capability
# 9.0: CUDA C++ Programming Guide, arithmetic throughput; Luo et al. (2024). Benchmarking and dissecting the Nvidia
# Hopper GPU architecture via microbenchmarking, arXiv:2402.13499
LATENCY = {"LDL": 41, "LDS": 29, "SHFL": 24, "BAR": 30, "MUFU": 24, "F2": 14, "I2": 14, "D": 8}
# Units work side by side: the busiest counts, or the scheduler, which issues one instruction in a cycle
UNITS = {
    "memory": {"LD": 4, "ST": 4, "SHFL": 4},
    "special": {"MUFU": 8, "F2F": 8, "I2F": 8, "F2I": 8},
    "float64": {"D": 2},
    "integer": dict.fromkeys(
        ("IADD", "VIADD", "ISETP", "FSETP", "LOP", "SEL", "FSEL", "SHF", "LEA", "PRMT", "VIMNMX", "FMNMX", "IABS"), 2
    ),
    "multiply": {"IMAD": 2, "FFMA": 1, "FADD": 1, "FMUL": 1},
}
LOADS, STORES = ("LDG", "LD.", "LDS"), ("STG", "ST.", "STS")


@dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str
    opcode: str
    operands: str

    def value(self, table: dict[str, int], default: int) -> int:
        """Of the longest prefix of the opcode."""
        prefixes = [
            prefix for prefix in table if self.opcode.startswith(prefix) and not self.opcode.startswith("DEPBAR")
        ]
        return table[max(prefixes, key=len)] if prefixes else default

    @property
    def is_access(self) -> bool:
        return self.opcode.startswith(LOADS + STORES)

    def registers(self) -> tuple[list[str], list[str]]:
        """Written and read."""
        names = [f"{kind}{number}" for kind, number in REGISTER.findall(self.operands)]
        sources = [self.predicate] if self.predicate else []
        if self.opcode.startswith(("ST", "BRA", "BAR", "RED", "EXIT")) or not names:
            return [], names + sources
        wide = 4 if ".128" in self.opcode else 2 if re.search(r"^D|\.64|WIDE|F64", self.opcode) else 1
        kind, number = REGISTER.fullmatch(names[0]).groups()  # type: ignore[union-attr]
        return [f"{kind}{int(number) + i}" for i in range(wide)], names[1:] + sources


@dataclass(frozen=True)
class Loop:
    """The instructions of one pass; `repeated`, or straight through a kernel that has no main loop."""

    code: list[Instruction]
    repeated: bool

    @property
    def accesses(self) -> int:
        return max(1, sum(step.is_access for step in self.code))

    @property
    def issue(self) -> int:
        """Cycles for which the busiest unit is occupied."""
        units = (sum(step.value(cycles, 0) for step in self.code) for cycles in UNITS.values())
        return max(len(self.code), *units)

    @property
    def loads(self) -> int:
        """Those from global memory."""
        return sum(step.opcode.startswith(("LDG", "LD.")) for step in self.code)

    def latency(self, load: float) -> float:
        """Cycles of a warp that has the units for itself, where a load from global memory takes `load`."""
        once = run(self.code, load)
        return run(self.code * 2, load) - once if self.repeated else once


def disassemble(cubin: Path) -> dict[str, list[Instruction]]:
    """The instructions of each kernel, by mangled name."""
    if not shutil.which("cuobjdump"):
        raise SystemExit("cuda_sass: expected cuobjdump in PATH; it comes with CUDA and with Triton")
    text = subprocess.run(["cuobjdump", "-sass", str(cubin)], capture_output=True, text=True, check=True).stdout
    _, *parts = FUNCTION.split(text)
    return {
        name: [Instruction(int(at, 16), *rest) for at, *rest in INSTRUCTION.findall(code)]
        for name, code in zip(parts[::2], parts[1::2])
    }


def main_loop(code: list[Instruction]) -> Loop:
    """The innermost loop with the most memory accesses, if it has half of them."""
    backward = [
        (int(target[0], 16), step.address)
        for step in code
        if step.opcode.startswith("BRA") and (target := re.findall(r"0x([0-9a-f]+)", step.operands))
    ]
    loops = [(start, end) for start, end in backward if start < end]
    innermost = [
        (start, end)
        for start, end in loops
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in loops)
    ]
    bodies = [[step for step in code if start <= step.address <= end] for start, end in innermost]
    loop = Loop(max(bodies, key=lambda body: sum(step.is_access for step in body), default=[]), repeated=True)
    whole = Loop(code, repeated=False)
    return loop if 2 * loop.accesses >= whole.accesses else whole


def run(code: list[Instruction], load: float) -> float:
    ready: dict[str, float] = {}
    clock = 0.0
    for step in code:
        written, read = step.registers()
        clock = max([clock + 1, *(ready.get(name, 0.0) for name in read)])
        latency = load if step.opcode.startswith(("LDG", "LD.")) else step.value(LATENCY, 5)
        ready |= dict.fromkeys(written, clock + latency)
    return clock
