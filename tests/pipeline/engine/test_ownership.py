"""Nothing is written to, or removed from, a folder that is not ours."""

import pytest
from damage import digest_of

from manifold_observer.pipeline.engine import ownership

MARK = "our-mark"


def thesis(folder):
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")


FOREIGN = {
    "a folder with a file": thesis,
    "a folder with a folder": lambda place: (place / "year 1").mkdir(parents=True),
    "a file": lambda place: place.write_text("years of work"),
    "a link to a folder": lambda place: (thesis(place.with_name("elsewhere")), place.symlink_to("elsewhere")),
    "a link to a folder of ours": lambda place: (
        ownership.claim("x", place.with_name("ours"), MARK),
        place.symlink_to("ours"),
    ),
    "a link to nothing": lambda place: place.symlink_to("nowhere"),
    "a folder by the name of the mark": lambda place: (place / MARK).mkdir(parents=True),
    "a link by the name of the mark": lambda place: (thesis(place), (place / MARK).symlink_to("nowhere")),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("ask", [ownership.check_folder, ownership.claim], ids=["check", "claim"])
def test_check_folder__refuses_in_a_sentence_what_is_not_ours(tmp_path, make, ask):
    make(tmp_path / "place")
    before = digest_of(tmp_path)
    with pytest.raises(ValueError, match=r"f: folder must be .*; got .*place.*\. \S+") as refused:
        ask("f: folder", tmp_path / "place", MARK)
    assert "\n" not in str(refused.value)
    assert digest_of(tmp_path) == before


@pytest.mark.parametrize("make", [lambda place: None, lambda place: place.mkdir()], ids=["new", "empty"])
def test_claim__marks_once_and_again(tmp_path, make):
    place = tmp_path / "place"
    make(place)
    for _ in range(2):
        ownership.claim("x", place, MARK)
        assert ownership.is_marked(place, MARK)
    (place / "thesis.txt").write_text("years of work")
    (place / MARK).write_bytes(b"\x00garbage")  # damage to the mark is none to the claim
    ownership.check_folder("x", place, MARK)


def test_remove_files__takes_our_names_alone(tmp_path):
    (tmp_path / "ours-1").write_text("")
    (tmp_path / "ours-2").mkdir()
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "ours-3").symlink_to("thesis.txt")
    ownership.remove_files(tmp_path, lambda name: name.startswith("ours"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours-2", "ours-3", "thesis.txt"]
    ownership.remove_files(tmp_path / "nowhere", lambda name: True)
