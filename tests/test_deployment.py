"""Every command of docs/deployment.md, as it is printed, in a sandbox with the package installed from a wheel.

Stood in for: `srun` (runs its command here), the machine that `head` names, the bucket (a server on this machine), and
absolute paths, which lie below the test's own folder. Images and pods are their commands and environment variables.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "deployment.md").read_text()
NEEDED = ("yaml", "hatchling", "distributed", "s3fs", "moto", "cryptography")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}"),
    pytest.mark.timeout(400),
]

APP = """
import numpy, jitblas
x = numpy.ones(4096, "c8")
assert jitblas.axpy_ex(2.0, x.real.copy(), numpy.ones(4096, "f4"))[0] == 3
assert jitblas.plan("cdotc:n=4096")(x, x) == 4096
assert jitblas.fft.fft(x)[0] == 4096
print("works")
"""


class Block:
    """A fenced block: its language, its text, and the file that it is, if it is one."""

    def __init__(self, name: str | None, language: str, text: str) -> None:
        self.name, self.language, self.text = name, language, text


BLOCKS = [
    Block(*found)
    for found in re.findall(r"(?:<!-- file: (\S+) -->\n)?^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
]


def block(name: str) -> Block:
    return next(block for block in BLOCKS if block.name == name)


def commands_after(heading: str) -> str:
    """The shell lines below a heading that are no files."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"(<!-- file: \S+ -->\n)?^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return "\n".join(text for named, text in found if not named)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this project."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=100)
    return folder


class Sandbox:
    """A folder with a virtual environment, its working directory and what stands for `/` in the document."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.working = folder / "work"
        port = free_port()
        self.places = {
            "head:8786": f"127.0.0.1:{port}",
            "--port 8786": f"--host 127.0.0.1 --port {port} --no-dashboard",
        }
        for top in (
            "/opt",
            "/shared",
            "/etc/jitblas-secret",
            "/etc/jitblas",
            "/kernels",
            "/tmp/empty",
            "/tmp/kernels",
        ):
            place = f"{folder}{top}"
            Path(place).mkdir(parents=True, mode=0o755)
            self.places[top] = place
        self.working.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=60)
        (site,) = (folder / "venv").glob("lib/python*/site-packages")
        (site / "tests.pth").write_text(sysconfig.get_path("purelib"))  # numpy and the others; jitblas is installed
        self.bin = folder / "venv" / "bin"
        self.script("pip", f'exec {shlex.quote(str(self.bin / "python"))} -m pip "$@"')
        self.script("dask", f'exec {shlex.quote(str(self.bin / "python"))} -m dask "$@"')
        self.script("srun", 'exec "$@"')
        self.environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "USER": "somebody",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_IGNORE_INSTALLED": "1",  # this project may be installed among the packages that the sandbox borrows
            "PIP_FIND_LINKS": str(wheels),
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's spelling of "no isolation"
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "JITBLAS_CACHE_DIR": str(folder / "store"),
        }
        (self.working / "app.py").write_text(APP)
        for one in BLOCKS:
            if one.name:
                (self.working / one.name).write_text(self.placed(one.text))

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def placed(self, text: str) -> str:
        """The text with the document's absolute paths below this folder."""
        for top, place in self.places.items():
            pattern = rf"(?<![\w/]){re.escape(top)}(?![\w-])" if top[0] == "/" else re.escape(top)
            text = re.sub(pattern, place, text)
        return text

    def run(self, text: str, check: bool = True, **settings: str) -> str:
        """Run shell lines, each of which must succeed; what they start in the background ends with them."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JITBLAS_")}
        output = self.folder / "output"  # a file: what runs in the background would keep a pipe open
        with output.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self.placed(text)],
                env={**kept, **self.environment, **settings},
                cwd=self.working,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                process.wait(200)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # nothing runs in the background
        if check:
            assert process.returncode == 0, output.read_text()
        return output.read_text()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def sandbox(tmp_path: Path, wheels: Path) -> Sandbox:
    made = Sandbox(tmp_path, wheels)
    made.run("pip install -q 'jitblas[fleet]'")
    return made


def test_no_block_is_left_out() -> None:
    """What the tests below run, by file and heading."""
    run = {"kernels.toml", "prewarm.sbatch", "job.sbatch", "prewarm-job.yaml", "app.yaml"}
    assert {one.name for one in BLOCKS if one.name} == run
    headings = ("What to prewarm", "A container image", "Slurm and shared file systems", "Who may put code here",
                "Looking after a store")  # fmt: skip
    inside = "\n".join(commands_after(heading) for heading in headings)
    for one in BLOCKS:
        if not one.name and one.language == "sh":
            assert one.text in inside
        else:
            assert one.name or one.language == "dockerfile"


def test_what_a_run_recorded_is_prewarmed_and_checked(sandbox: Sandbox) -> None:
    sandbox.run(commands_after("What to prewarm"))
    assert "works" in sandbox.run("python app.py", JITBLAS_MODE="load")


def test_the_image_runs_without_a_compiler_and_writes_nothing(sandbox: Sandbox) -> None:
    (dockerfile,) = (one.text for one in BLOCKS if one.language == "dockerfile")
    stages = re.split(r"^FROM .*\n", dockerfile, flags=re.MULTILINE)[1:]
    assert len(stages) == 2
    settings: dict[str, str] = {}
    for stage in stages:
        settings.clear()
        for line in stage.strip().splitlines():
            word, _, rest = line.partition(" ")
            if word == "ENV":
                settings |= dict(part.split("=", 1) for part in shlex.split(sandbox.placed(rest)))
            elif word == "RUN":
                sandbox.run(rest, **settings)
            elif word == "COPY" and not rest.startswith("--from"):
                *names, to = rest.split()
                sandbox.run(f"cp {' '.join(names)} {to}", **settings)
            else:
                assert word in ("COPY", "CMD")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in (sandbox.folder / "opt").rglob("*"))
    command = shlex.join(json.loads(dockerfile.rpartition("CMD ")[2]))
    assert "works" in sandbox.run(command, **settings, JITBLAS_CXX="/nowhere/g++")
    assert sorted((str(path), path.stat().st_mtime_ns) for path in (sandbox.folder / "opt").rglob("*")) == before
    assert all(path.stat().st_mode & 0o004 for path in (sandbox.folder / "opt").rglob("*"))


def test_a_wheel_of_kernels(sandbox: Sandbox) -> None:
    sandbox.run(commands_after("A container image"))


def test_jobs_of_a_cluster_use_what_was_prewarmed_on_a_shared_file_system(sandbox: Sandbox) -> None:
    sandbox.run("bash prewarm.sbatch")
    own = sandbox.folder / "node"
    own.mkdir()
    assert "works" in sandbox.run("bash job.sbatch", TMPDIR=str(own))
    assert len(list(own.rglob("kernel.so"))) == 0  # all came from the shared folder


def test_kernels_are_compiled_on_a_dask_cluster(sandbox: Sandbox) -> None:
    workers = sandbox.folder / "workers"
    told = sandbox.run(
        commands_after("Slurm and shared file systems").replace(
            "dask worker", f"JITBLAS_CACHE_DIR={workers} dask worker"
        )
    )
    assert "8 compiled" in told
    assert len(list(workers.rglob("kernel.so"))) == 8
    assert "works" in sandbox.run("python app.py", JITBLAS_MODE="load")


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    """Settings for an S3 server on this machine that has the document's bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
                "AWS_DEFAULT_REGION": "us-east-1"}  # fmt: skip
    boto3.client(
        "s3", endpoint_url=settings["AWS_ENDPOINT_URL"], region_name="us-east-1", aws_access_key_id="x",
        aws_secret_access_key="x",
    ).create_bucket(Bucket="kernels")  # fmt: skip
    yield settings
    server.stop()


def containers(document: Any, kind: str) -> list[tuple[str, dict[str, str]]]:
    """(command, environment) of a pod's containers."""
    found = document["spec"]["template"]["spec"].get(kind, [])
    return [(shlex.join(one["command"]), {item["name"]: item["value"] for item in one["env"]}) for one in found]


def test_pods_take_signed_kernels_from_a_bucket(sandbox: Sandbox, bucket: dict[str, str]) -> None:
    import yaml

    secret = sandbox.places["/etc/jitblas-secret"]
    configuration = sandbox.places["/etc/jitblas"]
    sandbox.run(
        f"jitblas cache keygen {secret}/release.key\ncp kernels.toml {configuration}\ncp app.py {sandbox.folder}/opt\n"
        f"JITBLAS_TRUSTED_KEYS={configuration}/trusted_keys jitblas cache trust {secret}/release.key.pub"
    )
    job, app = (yaml.safe_load((sandbox.working / name).read_text()) for name in ("prewarm-job.yaml", "app.yaml"))
    ((command, settings),) = containers(job, "containers")
    told = sandbox.run(command, **settings, **bucket)
    assert "8 compiled, 8 uploaded" in told
    without_compiler = {"JITBLAS_CXX": "/nowhere/g++"}
    ((command, settings),) = containers(app, "initContainers")
    assert "8 downloaded" in sandbox.run(command, **settings, **bucket, **without_compiler)
    ((command, settings),) = containers(app, "containers")
    assert "works" in sandbox.run(command, **settings, **bucket, **without_compiler)


def test_keys_archives_and_trust(sandbox: Sandbox) -> None:
    making, taking = re.findall(
        r"^```sh\n(.*?)^```",
        TEXT.partition("## Who may put code here")[2].partition("\n## ")[0],
        re.MULTILINE | re.DOTALL,
    )
    sandbox.run(making)
    other = {"JITBLAS_CACHE_DIR": str(sandbox.folder / "other")}
    assert "jitblas cache trust" in sandbox.run("jitblas cache import kernels.tar.gz", check=False, **other)
    assert "8 taken in" in sandbox.run(taking, **other)
    assert "works" in sandbox.run("python app.py", JITBLAS_MODE="load", **other)


def test_looking_after_a_store(sandbox: Sandbox) -> None:
    sandbox.run("jitblas prewarm --manifest kernels.toml")
    told = sandbox.run(commands_after("Looking after a store"))
    assert "8 of 8 entries are complete" in told and "deleted from" in told
