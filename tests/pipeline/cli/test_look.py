"""A look says what is in a file and what to type next; that very line runs."""

import json
import shlex

import numpy as np
import pytest
import soundfile
import xarray as xr

from edf_files import Edf
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread", "in_this_process")

RNG = np.random.default_rng(0)


def sound(folder):
    time = np.arange(16_000 * 4) / 16_000
    tone = 0.3 * np.sin(2 * np.pi * (400 + 200 * np.sin(time)) * time)
    soundfile.write(
        folder / "my song.wav", np.stack([tone, tone[::-1]], 1) + 0.01 * RNG.normal(size=(64_000, 2)), 16_000
    )
    return "my song.wav"


def spikes(folder):
    times = np.sort(RNG.uniform(0, 40, 3000))
    rows = "".join(f"{RNG.integers(6)},{time:.4f}\n" for time in times)
    (folder / "spikes.csv").write_text(f"unit,time\n{rows}")
    return "spikes.csv"


def counts(folder):
    rows = "".join(f"{k / 10:.1f},{','.join(map(str, RNG.poisson(3, 5)))}\n" for k in range(400))
    (folder / "counts.csv").write_text(f"time,a,b,c,d,e\n{rows}")
    return "counts.csv"


def muscles(folder):
    rows = "".join(
        f"{k}\t" + "\t".join(f"{v:.2e}" for v in RNG.normal(size=4)) + f"\t{k // 3000}\n" for k in range(9000)
    )
    (folder / "emg.txt").write_text(f"time\ta\tb\tc\td\tclass\n{rows}")
    return "emg.txt"


def brain(folder):
    signals = [(f"EEG {k}", "uV", -100, 100, RNG.integers(-3000, 3000, (60, 100))) for k in range(2)]
    slow = [("Temp", "C", 30, 40, RNG.integers(-3000, 3000, (60, 1)))]
    Edf(signals + slow).write(folder / "night.edf")
    return "night.edf"


def dataset():
    values = RNG.normal(size=(6000, 4)).astype("f4")
    return xr.Dataset({"eeg": (("time", "channel"), values)}, coords={"time": ("time", np.arange(6000) / 200)})


def netcdf(folder):
    dataset().to_netcdf(folder / "eeg.nc")
    return "eeg.nc"


def zarr(folder):
    dataset().to_zarr(folder / "eeg.zarr", consolidated=False)
    return "eeg.zarr"


def holes(folder):
    rows = "".join(
        f"{k / 10:.1f},{'' if k in (70, 71) else k % 7 + k % 11 / 20},{k % 13 + k % 5 / 8}\n" for k in range(300)
    )
    (folder / "bench.csv").write_text(f"seconds,x,y\n{rows}")
    return "bench.csv"


MADE = {
    sound: "--features stft --frame 23ms",
    spikes: "--bin 0.1",
    counts: "--features identity",
    muscles: "--labels class --time-unit ms",
    brain: "--clock-rates 100",
    netcdf: "--features log_rms",
    zarr: "--features log_rms",
    holes: "--gaps nan",
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "words"), MADE.items(), ids=[make.__name__ for make in MADE])
def test_look__the_line_that_it_ends_with_runs(console, tmp_path, monkeypatch, make, words):
    monkeypatch.chdir(tmp_path)
    name = make(tmp_path)
    code, text, err = console("look", name)
    assert (code, err) == (0, "")
    line = text.partition("Next:\n")[2].splitlines()[0].strip()
    assert words in line
    assert line.startswith("manifold-observer run ")
    code, _, err = console(*shlex.split(line)[1:])
    assert code == 0, err
    out = "eeg.state.zarr" if name == "eeg.zarr" else f"{tmp_path.joinpath(name).stem}.zarr"
    assert xr.open_datatree(tmp_path / out)["state"].sizes["frame"] > 30


def test_look__labels_are_set_aside_and_the_unit_is_asked_about(console, tmp_path):
    muscles(tmp_path)
    code, text, _ = console("look", tmp_path / "emg.txt", "--json")
    (found,) = json.loads(text)["files"]
    assert code == 0
    assert found["channels"] == ["a", "b", "c", "d"]
    assert set(found["labels"]["class"]) == {"0", "1", "2"}
    assert (found["rate"], found["samples"]) == (1000, 9000)
    assert [one["taken"] for one in found["questions"]] == ["--labels class", "--time-unit ms"]


def test_look__reads_a_bounded_part_of_a_long_table(console, tmp_path):
    row = "{},1.5,2.25,-3.125\n"
    with (tmp_path / "long.csv").open("w") as file:
        file.write("time,x,y,z\n")
        file.writelines(row.format(k / 100) for k in range(200_000))
        file.write("this is no row\n")  # nobody comes as far
    code, text, _ = console("look", tmp_path / "long.csv", "--json")
    (found,) = json.loads(text)["files"]
    assert code == 0
    assert found["seen"] < 0.4
    assert found["samples"] == pytest.approx(200_000, rel=0.1)
    assert found["rate"] == pytest.approx(100)


def test_look__given_options_are_not_asked_about_and_stand_in_the_line(console, tmp_path):
    muscles(tmp_path)
    _, text, _ = console("look", tmp_path / "emg.txt", "--json", "--drop-channels", "class", "--time-unit", "s")
    (found,) = json.loads(text)["files"]
    assert found["questions"] == []
    assert "--drop-channels class" in found["next"]
    assert "--time-unit s" in found["next"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    share(
        [
            ("page.wav", b"<html><title>404</title></html>", "an HTML page"),
            ("nothing.csv", b"", "empty"),
            ("words.bin", b"\0\1\2" * 99, "is not in a supported format"),
            ("spikes.mid", b"MThd" + bytes(20), "MIDI"),
        ],
        2,
    ),
)
def test_look__what_cannot_be_opened_is_said_in_one_sentence(console, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    sound(tmp_path)
    code, text, err = console("look", tmp_path / name, tmp_path / "my song.wav")
    assert code == 1
    assert message in err
    assert "Traceback" not in err
    assert "my song.wav" in text  # the others are looked at all the same


@pytest.mark.parametrize("wide", ["utf-16", "utf-8"])
def test_head__ends_with_a_whole_line(tmp_path, wide):
    from manifold_observer.pipeline.look.head import head_of  # noqa: PLC0415

    text = "time;Δx\n" + "".join(f"{k};{k % 7 + 0.5}\n" for k in range(120_000))
    (tmp_path / "long.csv").write_bytes(text.encode(wide))
    with head_of(tmp_path / "long.csv") as head:
        rows = head.path.read_bytes().decode(wide)
        assert text.startswith(rows)
        assert rows.endswith("\n")
    assert not head.path.exists()
