"""`torchcommodity fit`: every model from the shell, checkpoints, settings."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from torchcommodity import forecast
from torchcommodity.data import embedded
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS
from torchcommodity.training import to_config, to_toml

Run = Callable[..., Result]
Error = Callable[[Result], str]
NETWORKS = [name for name in MODELS if name != "har-garch"]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prices") / "prices.csv"
    embedded(["WTI", "BRENT"]).between("2013-07-01", "2018-12-31").to_pandas().to_csv(path)
    return path


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Settings of a training that takes a second."""
    path = tmp_path / "config.toml"
    path.write_text("[train]\nepochs = 1\nwindow = 63\nbatch_size = 4\n")
    return path


def test_fit_without_a_network_says_what_was_fitted(run: Run, prices: Path, tmp_path: Path) -> None:
    result = run("fit", "--data", prices, "--out", tmp_path / "new" / "model.safetensors")
    assert result.exit_code == 0, result.output
    assert "Fitted HAR-GARCH on 2 symbols, 2015-07-01 to 2018-12-28" in result.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("name", NETWORKS)
def test_fit_of_every_network_and_again_from_the_settings_in_its_file(
    run: Run, name: str, history: Path, short: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    result = run("fit", "--model", name, "--data", history, "--config", short, "--out", one, "--seed", 4)
    assert result.exit_code == 0, result.output
    assert type(Forecaster.load(one).model) is MODELS[name].model
    assert "epoch" in result.stdout
    if name == "garch-lstm":
        assert "before" in result.stdout
        assert "halflife" in result.stdout
    again = run("fit", "--data", history, "--config", one, "--out", other, "--seed", 4, "--quiet")
    assert (again.exit_code, again.output) == (0, "")
    assert one.read_bytes() == other.read_bytes()
    assert {path.name for path in tmp_path.glob("*o*e*")} == {one.name, other.name}, "a checkpoint was left"


def test_settings_in_a_model_file_choose_no_module_to_import(
    run: Run, error: Error, prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "payload.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    model = forecast.fit(embedded(["WTI"]).between("2013-07-01", "2018-12-31"))
    settings = model.record.settings.replace('"har-garch"', '"payload:Network"')
    replace(model, record=replace(model.record, settings=settings)).save("changed.safetensors")
    result = run("fit", "--data", prices, "--config", "changed.safetensors")
    assert result.exit_code == 2
    assert "config: model.name must match --model har-garch; got payload:Network" in error(result)
    assert "payload" not in sys.modules


def test_fit_rejects_a_damaged_checkpoint_or_starts_again(
    run: Run, error: Error, history: Path, short: Path, tmp_path: Path
) -> None:
    (tmp_path / "model.checkpoint.pt").write_bytes(b"damaged")
    command = ("fit", "--model", "har-lstm", "--data", history, "--config", short, "--out")
    result = run(*command, tmp_path / "model.safetensors")
    assert result.exit_code == 2
    assert "checkpoint.pt is damaged" in error(result)
    assert run(*command, tmp_path / "model.safetensors", "--no-resume").exit_code == 0
    elsewhere = run(*command, tmp_path / "b.safetensors", "--checkpoint", tmp_path / "c" / "x.pt", "--quiet")
    assert (elsewhere.exit_code, list((tmp_path / "c").iterdir())) == (0, [])


def test_fit_lists_models_and_prints_settings(run: Run, fitted: Path) -> None:
    assert [line.split()[0] for line in run("fit", "--list").stdout.splitlines()] == list(MODELS)
    settings = {"references": list(embedded().references.symbols)}  # the prices say which
    for name in MODELS:
        expected = to_toml(to_config({"model": {"name": name, "har": settings}}))
        assert run("fit", "--model", name, "--print-config").stdout == expected
    assert run("fit", "--config", fitted, "--print-config").stdout == run("fit", "--print-config").stdout
    assert 'device = "cuda"' in run("fit", "--device", "cuda", "--print-config").stdout


def test_fit_names_unknown_settings(run: Run, error: Error, short: Path, tmp_path: Path) -> None:
    short.write_text("[train]\nepoch = 3")
    result = run("fit", "--model", "har-lstm", "--config", short, "--out", tmp_path / "new" / "m.safetensors")
    assert result.exit_code == 2
    assert "unknown key 'train.epoch'; did you mean 'train.epochs'?" in error(result)
    short.write_text('[model]\nname = "har-lltm"')
    assert "har-lltm" in error(run("fit", "--model", "har-lstm", "--config", short))
    assert not (tmp_path / "new").exists()


def test_fit_leaves_out_unusable_symbols_on_request(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    lines = prices.read_text().splitlines()
    lines = [f"{lines[0]},SHORT,FLAT", *(f"{line},{i if i < 9 else ''},7" for i, line in enumerate(lines[1:], 1))]
    prices.write_text("\n".join(lines))
    command = ("fit", "--data", prices, "--out", tmp_path / "model.safetensors")
    assert "--drop-unusable" in error(run(*command))
    result = run(*command, "--drop-unusable")
    assert result.exit_code == 0, result.output
    assert "Dropped, cannot be fitted: SHORT, FLAT." in result.stdout
    assert Forecaster.load(tmp_path / "model.safetensors").symbols == ("WTI", "BRENT")


def test_fit_interrupted_says_how_to_resume(
    run: Run, error: Error, prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, checkpoint: Path, **__: object) -> None:
        checkpoint.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(forecast, "fit", interrupt)
    result = run("fit", "--data", prices, "--out", tmp_path / "model.safetensors")
    assert result.exit_code == 130
    assert f"the same command resumes from {tmp_path}/model.checkpoint.pt" in error(result)
