"""Container, compose and Kubernetes examples fit the server; workflows run make targets and nothing else."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchcommodity.serve.http import Limits, Routes

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"
DRAIN = 1 + Limits().timeout  # seconds: requests on open connections, then those in progress
ACTION = re.compile(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
per_workflow = pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda p: p.stem)


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


@per_workflow
def test_workflow_runs_make_targets_only(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in [step["run"] for step in steps(path) if "run" in step]:
        assert command.split()[0] == "make"
        assert set(command.split()[1:]) <= targets


@per_workflow
def test_workflow_pins_actions_by_commit_and_names_their_version(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not ACTION.search(line)] == []


def test_workflow_has_a_job_for_each_mark_and_one_for_the_rest() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    marks = re.findall(r'^  "(\w+): ', text[text.index("markers = [") :], re.MULTILINE)[2:]  # without slow and release
    output = subprocess.run([ROOT / ".ci" / "marks"], capture_output=True, text=True, check=True).stdout
    assert json.loads(output.removeprefix("marks=")) == [f"not ({' or '.join(marks)})", *marks]


def test_image_takes_the_wheel_of_its_version(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name, text in {
        "torchcommodity/__init__.py": '__version__ = "0.2.0"\n',
        "dist/torchcommodity-0.1.0-py3-none-manylinux_2_28_x86_64.whl": "",
        "dist/commit": "abc\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = ["make", "--silent", "--directory", str(tmp_path), "image", "DOCKER_BUILD=echo"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode
    assert "image: expected the wheels of version 0.2.0 in dist/; run make wheel" in process.stderr

    (tmp_path / "dist/torchcommodity-0.2.0-py3-none-manylinux_2_28_x86_64.whl").touch()
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "VERSION=0.2.0 --build-arg REVISION=abc --tag torchcommodity:0.2.0 " in process.stdout


def test_compose_leaves_time_to_finish_requests() -> None:
    server = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["server"]
    assert float(server["stop_grace_period"].removesuffix("s")) > DRAIN
    assert server["read_only"]


def pod() -> dict[str, Any]:
    deployment = next(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    return deployment["spec"]["template"]["spec"]


def test_kubernetes_leaves_time_to_finish_requests() -> None:
    (server,) = pod()["containers"]
    assert pod()["terminationGracePeriodSeconds"] > server["lifecycle"]["preStop"]["sleep"]["seconds"] + DRAIN


def test_kubernetes_probes_ask_the_routes_of_the_server() -> None:
    (server,) = pod()["containers"]
    probes = {name: server[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert probes == {"startup": Routes().health, "readiness": "/ready", "liveness": "/live"}


def test_kubernetes_runs_as_the_user_of_the_image() -> None:
    user = f"{pod()['securityContext']['runAsUser']}:{pod()['securityContext']['runAsGroup']}"
    assert re.findall(r"^USER (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE) == [user]
