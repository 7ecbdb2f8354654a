"""docs/concepts/operators.md: its code is that of the library; the kit's page lists every check of the contract."""

import re
from pathlib import Path
from typing import Any

import torch

import torch_opkit as opkit
from torchcommodity import ops

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "operators.md").read_text()
SCAN = ROOT / "torchcommodity" / "ops" / "_scan"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def run(block: str, **names: Any) -> dict[str, Any]:
    names |= {"torch": torch, "opkit": opkit}
    exec(compile(block, "operators.md", "exec"), names)
    return names


def test_operators_page_reference_is_linear_recurrence() -> None:
    reference = run(blocks("python")[0])["_reference"]
    a, b = torch.rand(2, 2, 5, 3, dtype=torch.double)
    torch.testing.assert_close(reference(a, b), ops.linear_recurrence(a, b))
    torch.testing.assert_close(reference(a, b, b[:, 0]), ops.linear_recurrence(a, b, b[:, 0]))


def test_operators_page_fake_has_the_shape_of_rolling_correlation() -> None:
    fake, x = run(blocks("python")[1])["_fake"], torch.rand(2, 9, 3)
    assert fake(x).shape == ops.rolling_correlation(x, 4).shape


def test_operators_page_shows_the_kernel_of_linear_recurrence() -> None:
    source = " ".join((SCAN / "linear_recurrence.kernel.h").read_text().split())
    for block in blocks("cpp"):
        assert " ".join(block.split()) in source


def test_operators_page_counts_the_files_of_an_operator() -> None:
    counts = re.findall(r"\| (\d(?: to \d)?) \|$", PAGE, flags=re.MULTILINE)
    files = [len(list(SCAN.parent.glob(pattern))) for pattern in ("_rolling/gather_lag.*", "_scan/linear_recurrence.*")]
    assert counts == [*map(str, files), "4 to 6"]
    assert len([*SCAN.glob("linear_recurrence.*"), *SCAN.glob("linear_recurrence_backward.*")]) == 4


def test_page_of_records_lists_every_check_with_its_requirement() -> None:
    _, _, contract = (ROOT / "opkit" / "docs" / "records.md").read_text().partition("## The contract")
    table = re.findall(r"^\| `(\w+)` \| (.*) \|$", contract, flags=re.MULTILINE)
    assert table == [(check.name, check.requirement) for check in opkit.CHECKS.values()]
