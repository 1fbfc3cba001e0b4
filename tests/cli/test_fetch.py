"""The command `fetch`: what it prints, its exit codes, a process that is killed, and a disk that is really full."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hub_server import Fault, HubServer, hub
from tiny import command, environment

PDF = os.urandom(1) * 1_500_000
DATASET = "yubo2333/MMLongBench-Doc"
PARQUET = "data/train-00000-of-00001.parquet"
FILES = {PARQUET: b"PAR1", "documents/a.pdf": PDF, "documents/b.pdf": PDF + b"b", "README.md": b"#"}
TO = "MMLongBench-Doc"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with hub() as found:
        found.put(DATASET, FILES)
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.chdir(tmp_path)
        yield found


def test_the_files_and_the_next_command_are_printed(server: HubServer) -> None:
    done = command("fetch", "mmlongdoc", "--to", "my data")
    commit = server.datasets[DATASET].branches["main"][:12]
    assert done.out == (
        f"hub:{DATASET} at {commit} → my data/{TO}: 3 of 3 files are there (3.0 MB), 3 downloaded now\n"
        "my data/downloads.json has the size and the SHA-256 of each file\n"
        "build with: mmlongbench build mmlongdoc --data 'my data' --out release\n"
    )
    assert (done.code, done.err) == (0, "")
    again = command("fetch", "mmlongdoc", "--to", "my data", "-q")
    assert (again.code, again.out, again.err) == (0, "", "")


def test_a_part_of_the_datasets_is_not_said_to_be_enough_for_a_build(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("include: [mmlongdoc, slidevqa]\n", "utf-8")
    said = "build with: mmlongbench build own.yaml --data data --out release\n"
    one = command("fetch", "own.yaml", "--to", "data", "--only", "mmlongdoc")
    assert one.out.endswith(f"\nwhen the sources of all datasets are there, {said}")
    assert one.code == 0
    all_of_one = command("fetch", "mmlongdoc", "--to", "data", "--only", "mmlongdoc")
    assert all_of_one.out.endswith("\nbuild with: mmlongbench build mmlongdoc --data data --out release\n")


def test_a_dry_run_asks_no_server_and_writes_nothing(server: HubServer, tmp_path: Path) -> None:
    listed = command("fetch", "slidevqa", "--to", "data", "--dry-run")
    assert listed.out == (
        "hub:NTT-hil-insight/SlideVQA → data/SlideVQA\n"
        "  for slidevqa; licence: NTT evaluation licence; no redistribution\n"
        "  files: data/test-*.parquet\n"
        "  agree first to NTT's evaluation licence\n"
        "  missing\n"
    )
    assert (listed.code, server.requests, list(tmp_path.iterdir())) == (0, [], [])
    for file in (f"{TO}/{PARQUET}", f"{TO}/documents/mine.pdf"):
        (tmp_path / "other" / file).parent.mkdir(parents=True)
        (tmp_path / "other" / file).touch()
    assert command("fetch", "mmlongdoc", "--to", "other", "--dry-run").out.endswith("  there (not checked)\n")
    command("fetch", "mmlongdoc", "--to", "data")
    assert command("fetch", "mmlongdoc", "--to", "data", "--dry-run").out.endswith("  there: 3 of 3 files (3.0 MB)\n")
    Path(f"data/{TO}/documents/a.pdf").unlink()
    assert "  incomplete: 2 of 3 files (1.5 MB)\n" in command("fetch", "mmlongdoc", "--to", "data", "--dry-run").out


def test_what_no_program_may_download_is_explained_and_is_no_failure(server: HubServer) -> None:
    server.put("tsunghanwu/visual_haystacks", {"single_needle/VHs_large/visual_haystack_10.json": b"[]"})
    done = command("fetch", "vh_single", "--to", "data")
    assert done.code == 0
    assert (
        "data/coco/train2017 is left to you, for vh_single (licence: COCO's terms for the photographs); in data:"
        in done.out
    )
    assert "  1. Read COCO's terms of use at https://cocodataset.org;" in done.out
    assert done.out.endswith(
        "when everything is there, build with: mmlongbench build vh_single --data data --out release\n"
    )
    assert "unverified" in command("fetch", "gov", "--to", "data", "--dry-run").out


def test_a_missing_file_is_a_problem_and_exit_1(server: HubServer) -> None:
    server.fail("a.pdf", Fault(body=b"x" * len(PDF)))
    done = command("fetch", "mmlongdoc", "--to", "data")
    assert done.code == 1
    assert done.err.startswith(f"problem: data/{TO}/documents/a.pdf: expected SHA-256 ")
    assert f"hub:{DATASET} at " in done.out
    assert "2 of 3 files are there" in done.out
    assert command("fetch", "mmlongdoc", "--to", "data").code == 0


def test_a_manifest_without_downloads_says_so() -> None:
    assert (
        command("fetch", "quickstart", "--to", "data").out == "build with: mmlongbench build quickstart --out release\n"
    )
    listed = command("fetch", "quickstart", "--to", "data", "--dry-run")
    assert (listed.code, listed.out) == (0, "nothing to download: the manifest names no downloads\n")
    wrong = command("fetch", "mmlongdoc", "--to", "data", "--only", "mmlongdok")
    assert (wrong.code, wrong.err) == (
        2,
        "error: --only 'mmlongdok': no such dataset; there are mmlongdoc; did you mean 'mmlongdoc'?\n",
    )


def test_secrets_of_an_address_are_never_printed(server: HubServer, tmp_path: Path) -> None:
    server.files["x.csv"] = b"x"
    url = f"{server.url.replace('http://', 'http://user:PASSWORD@')}/files/x.csv?sig=TOKEN"
    common = {"name": "a", "builder": "docvqa", "reader": "own_documents", "source": "sample"}
    own = {"datasets": [{**common, "downloads": [{"url": url, "to": "x.csv"}]}]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own), "utf-8")
    server.fail("x.csv", Fault(status=403))
    said = [command("fetch", "own.yaml", "--to", "data", *words) for words in ((), (), ("--dry-run",))]
    assert [each.code for each in said] == [1, 0, 0]
    printed = "".join(each.out + each.err for each in said) + (tmp_path / "data/downloads.json").read_text("utf-8")
    assert "x.csv" in printed
    assert not [secret for secret in ("PASSWORD", "TOKEN") if secret in printed]


def test_a_folder_that_a_killed_process_left_beside_a_whole_file_is_removed(server: HubServer, tmp_path: Path) -> None:
    name = hashlib.sha256(b"a.pdf").hexdigest()[:16]
    assert command("fetch", "mmlongdoc", "--to", "data").code == 0
    left = tmp_path / "data" / TO / f"documents/.part-{name}"
    (left / ".cache").mkdir(parents=True)
    assert command("fetch", "mmlongdoc", "--to", "data").code == 0
    assert not left.exists()


def test_a_killed_process_leaves_no_file_that_looks_whole(server: HubServer, tmp_path: Path) -> None:
    server.fail("b.pdf", Fault(cut=700_000), *[Fault(status=503, headers={"Retry-After": "200"})] * 9)
    words = [sys.executable, "-m", "mmlongbench", "fetch", "mmlongdoc", "--to", "data"]
    with subprocess.Popen(words, env=environment(HF_ENDPOINT=server.url)) as process:
        # the first answer was cut, and the client waits for the next one
        while not (server.other and (left := [*server.other.faults.values()]) and sum(map(len, left)) < 10):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert not Path(f"data/{TO}/documents/b.pdf").exists()
    assert server.other
    server.other.faults.clear()
    server.faults.clear()
    done = command("fetch", "mmlongdoc", "--to", "data")
    assert (done.code, "3 of 3 files are there" in done.out) == (0, True)
    assert Path(f"data/{TO}/documents/a.pdf").read_bytes() == PDF
    assert not list(tmp_path.rglob(".part-*"))
