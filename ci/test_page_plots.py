"""The drawings of a page: in its colours, with names of their own, the same for the same data."""

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="matplotlib draws the plots and is not installed")

from ci.page_facts import ITEM_BYTES, PEERS, Timing
from ci.page_plots import Plots, Series, roofline, size

SVG = "{http://www.w3.org/2000/svg}"


def timing(shape: str, of_copy: float, dtype: str = "float32", **peers: float) -> Timing:
    return Timing("k", "GPU", shape, dtype, "contiguous", 1e-3, 100.0, of_copy, tuple(peers.items()))


def drawn() -> tuple[str, str]:
    plots = Plots()
    ours = [timing("4x3", 0.9, eager=0.3), timing("1x268435456", 0.6, eager=0.2)]
    points = [("k, float32", ours, ""), ("eager", ours, "eager")]
    return plots.roofline(points, "A title", "Some <words>"), plots.history([0.9, 0.8, 0.95], "B", "More")


def parsed(svg: str) -> ElementTree.Element:
    """The drawing as XML, in the namespace that HTML gives it."""
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))  # noqa: S314


def test_a_drawing_has_a_name_and_a_description() -> None:
    for svg, title, words in zip(drawn(), ("A title", "B"), ("Some <words>", "More"), strict=True):
        root = parsed(svg)
        assert root.get("role") == "img"
        (named,) = (each for each in root if each.tag == f"{SVG}title")
        (described,) = (each for each in root if each.tag == f"{SVG}desc")
        assert (named.text, described.text) == (title, words)
        assert root.get("aria-labelledby") == f"{named.get('id')} {described.get('id')}"


def test_the_ids_of_two_drawings_differ_and_all_that_is_referred_to_is_there() -> None:
    one, other = (re.findall(r'\bid="([^"]+)"', svg) for svg in drawn())
    assert len(one) == len(set(one))
    assert not set(one) & set(other)
    for svg, identities in zip(drawn(), (one, other), strict=True):
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', svg)) <= set(identities)


def test_a_drawing_follows_light_and_dark_and_loads_nothing() -> None:
    for svg in drawn():
        assert set(re.findall(r"#[0-9a-fA-F]{6}", svg)) <= {"#000000"}  # matplotlib's own: of what it does not draw
        assert "var(--ink)" in svg
        assert "http" not in svg.replace("http://www.w3.org/", "")
        assert "<text" in svg


def test_the_same_data_give_the_same_bytes() -> None:
    assert drawn() == drawn()


def test_every_kind_of_point_has_a_marker_of_its_own() -> None:
    kinds = [*ITEM_BYTES, *PEERS]
    svg = roofline([Series(kind, kind, (4, 1 << 20), (0.1, 1.4)) for kind in kinds], "p", "t", "w")
    coloured = r'<use href="#(p-m[0-9a-f]+)"[^>]*style="[^"]*var\(--(one|two|three|four|five|six)\)'
    pairs = set(re.findall(coloured, svg))
    assert len(pairs) == len({marker for marker, _ in pairs}) == len({colour for _, colour in pairs}) == len(kinds)


@pytest.mark.parametrize(
    ("count", "words"), [(12, "12 B"), (4096, "4 KiB"), (262140, "256 KiB"), (5 << 20, "5 MiB"), (1 << 30, "1 GiB")]
)
def test_a_size_is_written_for_a_person(count: int, words: str) -> None:
    assert size(count) == words
