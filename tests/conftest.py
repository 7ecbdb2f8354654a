"""Real prices for tests, what is made once for all parallel processes, and no access to the user's own files."""

import itertools
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

# scripts, in processes of their own: without this library's kernels, on a GPU (`make test-cuda`), beside other versions
# of torch (`make test-versions`), on a device without float64, whose backend later tests of the process would see
collect_ignore = ["ops/cuda_emulation", "cuda", "versions"]
collect_ignore_glob = ["without_float64/[!t]*.py"]

settings.register_profile("torchcommodity", deadline=None, print_blob=True)
settings.load_profile("torchcommodity")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Ray come first, so that one of the parallel processes runs them all, on one cluster."""
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """once(name, write): path of the file or folder that `write(path)` makes, in the first process that asks for it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of all parallel processes

    def path_of(name: str, write: Callable[[Path], object]) -> Path:
        path, unfinished = root / "once" / name, root / "unfinished" / name
        path.parent.mkdir(exist_ok=True)
        unfinished.parent.mkdir(exist_ok=True)
        with FileLock(f"{unfinished}.lock"):
            if not path.exists():
                shutil.rmtree(unfinished, ignore_errors=True)  # of an attempt that failed
                write(unfinished)
                unfinished.rename(path)
        return path

    return path_of


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A cluster of Ray with one node of one core; a test removes the nodes that it adds."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray itself
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real prices that the project does not ship; tests that need it are skipped without it."""
    folder = Path(os.environ.get("TORCHCOMMODITY_SHARED") or "no such folder").absolute() / "data"
    if not (folder / "daily.csv.gz").is_file():
        pytest.skip("needs real prices: set TORCHCOMMODITY_SHARED to the folder that contains data/daily.csv.gz")
    return folder


@pytest.fixture(scope="session")
def futures(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> "data.Panel":  # noqa: F821
    """Real front-month prices of four futures, with their contracts and the curve of three nearby contracts."""
    import pandas as pd

    from torchcommodity import data

    codes = {"WTI": "CL", "BRENT": "BRN", "CORN": "C", "SOYBEAN": "S"}
    table = pd.read_csv(shared_data / "daily.csv.gz", parse_dates=["date"])
    frame = table[table["symbol"].isin(codes)].pivot(index="date", columns="symbol", values="close")
    nearby = pd.read_csv(shared_data / "term_structure.csv.gz")
    path = tmp_path_factory.mktemp("curve") / "curve.parquet"
    nearby[nearby["symbol"].isin(codes) & (nearby["nth"] <= 3)].to_parquet(path)
    return data.to_panel(frame).with_contracts(codes).with_curve(data.read_curve(path))


@pytest.fixture(scope="session")
def unchecked_names() -> Callable[[], AbstractContextManager[None]]:
    """A context in which every symbol and unit is accepted, to test that each output escapes them on its own."""

    @contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("symbol_problem", "unit_problem"):
                patch.setattr(f"torchcommodity.data._core.provenance.{name}", lambda text: "")
            yield

    return context


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for each test, created by what writes to it."""
    root = tmp_path_factory.mktemp("homes")
    return (root / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _no_user_files(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests neither read nor write the user's own store, cache and keys."""
    home = next(_homes)
    monkeypatch.setenv("TORCHCOMMODITY_STORE", str(home / "prices.duckdb"))
    monkeypatch.setenv("TORCHCOMMODITY_CACHE", str(home / "cache"))
    monkeypatch.setenv("TORCH_OPKIT_CACHE", str(home / "native"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("EIA_API_KEY", "TORCHCOMMODITY_FRED_URL", "TORCHCOMMODITY_EIA_URL"):
        monkeypatch.delenv(name, raising=False)
