"""The command group: what every command has in common."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import Result

import torchcommodity
import torchcommodity.cli
from torchcommodity.cli._application import COMMANDS, INPUTS, app
from torchcommodity.cli._prices import Prices

Run = Callable[..., Result]
Error = Callable[[Result], str]

LIGHT = """
import sys
from torchcommodity.cli._application import COMMANDS, app
lines = [[name, "--help"] for name in COMMANDS] + [["--help"], ["--version"], ["fti"], ["fit", "--dat", "x"]]
lines += [[name, "--data", "nosuch.csv"] for name in ("fit", "forecast", "backtest", "tune", "portfolio", "scenarios")]
lines += [["data", "check", "nosuch.csv"], ["predict", "nosuch.pt2"], ["fit", "--model", "har-lsm"]]
for line in lines:
    try:
        app(line, prog_name="torchcommodity")
    except SystemExit as end:
        print(line, end.code, file=sys.stderr)
print("heavy:", sorted({"torch", "pandas", "numpy", "plotly", "lightning_fabric", "duckdb"} & set(sys.modules)))
"""


def test_help_and_input_errors_import_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"{command} " in run("--help").stdout
    assert "..." not in run("--help").stdout.partition("Commands:")[2], "the first sentence of a help is too long"


INPUT_ERRORS = {
    "command": (("fti",), "torchcommodity: No such command 'fti'. Did you mean 'fit'?"),
    "option": (("fit", "--dat", "x"), "fit: No such option: --dat"),
    "option value": (("forecast", "--seed", "x"), "Invalid value for '--seed'"),
    "file": (("forecast", "--data", "nosuch.csv"), "or sql:QUERY; got 'nosuch.csv', which does not exist"),
    "folder": (("forecast", "--data", "docs"), "docs: expected a file, or Parquet files in a folder"),
    "empty source": (("forecast", "--data", ""), "got an empty string"),
    "model file": (("predict", "nosuch.pt2"), "'nosuch.pt2' does not exist"),
    "model name": (("backtest", "--model", "har-lsm"), "unknown model 'har-lsm'; did you mean 'har-lstm'?"),
    "curve": (("backtest", "--curve", "nosuch.csv"), "'nosuch.csv' does not exist"),
    "symbol names": (("forecast", "--symbols", " , "), "--symbols: expected names separated by commas"),
    "symbol": (("forecast", "--symbols", "WTI,GOLD"), "GOLD"),
    "contracts": (("forecast", "--contracts", "WTI"), "--contracts: expected each symbol once, as in WTI=CL"),
    "product code": (("forecast", "--contracts", "WTI=XX"), "XX"),
    "stored name": (("forecast", "--data", "store:nothing"), "nothing"),
    "out is a file": (("forecast", "--symbols", "WTI", "--out", __file__), "--out: must be a folder"),
    "output folder": (("predict", __file__, "--out", "/dev/null/f.csv"), "/dev/null"),
    "table ending": (("backtest", "--out", "scores.xlsx"), "ends with .csv or .parquet or .json; got 'scores.xlsx'"),
    "model ending": (("fit", "--out", "model.pt"), "ends with .safetensors; got 'model.pt'"),
    "checkpoint": (("fit", "--out", "m.safetensors", "--checkpoint", "./m.safetensors"), "another file than --out"),
    "date": (("scenarios", "--through", "yesterday"), "expected a date YYYY-MM-DD; got 'yesterday'"),
    "date without dashes": (("tune", "--through", "20161231"), "expected a date YYYY-MM-DD; got '20161231'"),
    "volatility": (("portfolio", "--volatility", "-1"), "'--volatility': expected a number > 0; got -1"),
    "not a function": (("profile", "math:pi"), "expected a function; got math:pi, of type float"),
    "fitted model": (("profile", __file__), "expected a fitted model, *.safetensors; got "),
    "short history": (("backtest", "--symbols", "BRENT", "--first-year", "1990"), "must have 5 years"),
    "year": (("backtest", "--symbols", "BRENT", "--first-year", "2050"), "2050"),
}


@pytest.mark.parametrize("kind", INPUT_ERRORS)
def test_invalid_input_is_one_line_and_exit_code_2(run: Run, error: Error, kind: str) -> None:
    arguments, message = INPUT_ERRORS[kind]
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in error(result)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"torchcommodity {torchcommodity.__version__}\n"
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert f'"{torchcommodity.__version__}"' not in project.read_text()


def test_python_m_runs_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "torchcommodity", "--version"], capture_output=True, text=True)
    assert done.stdout == f"torchcommodity {torchcommodity.__version__}\n"


def test_shell_completion_completes_commands_and_options() -> None:
    code = "from torchcommodity.cli import main; main()"

    def complete(words: str) -> list[str]:
        request = {"_TORCHCOMMODITY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **request}
        )
        return done.stdout.split('"')

    assert {"backtest", "batch"} <= set(complete("torchcommodity ba"))
    assert "--first-year" in complete("torchcommodity backtest --fi")


def test_show_completion_prints_a_script(run: Run) -> None:
    code = "from torchcommodity.cli import main; main()"
    shell = {"SHELL": "/bin/bash", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env={**os.environ, **shell},
    )
    assert "complete -o default -F _torchcommodity_completion torchcommodity" in done.stdout


def test_ctrl_c_is_exit_code_130(run: Run, error: Error, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Prices, "read", interrupt)
    result = run("forecast")
    assert result.exit_code == 130
    assert "interrupted; nothing was written" in error(result)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("torchcommodity.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(
        SystemExit, match=r"needs typer, which is not installed: pip install 'torchcommodity\[forecast\]'"
    ):
        torchcommodity.cli.main()


@pytest.mark.slow
@pytest.mark.process
def test_closed_pipe_ends_quietly() -> None:
    command = f"{sys.executable} -m torchcommodity data list | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_every_option_that_names_a_path_is_an_input_or_an_output() -> None:
    outputs = {"out", "target", "dest", "checkpoint", "template", "tensorboard", "trace", "stacks", "store"}
    root = get_command(app)
    for name in COMMANDS:
        command = root.get_command(None, name)  # type: ignore[attr-defined]
        for part in getattr(command, "commands", {"": command}).values():
            for option in part.params:
                if option.metavar in ("FILE", "DIR", "SOURCE", "PANELS", "MODEL", "NAME=FILE", "TARGET"):
                    assert option.name in {*INPUTS, *outputs, "token_file"}, (name, option.name)
