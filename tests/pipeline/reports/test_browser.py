"""The page in a real browser: no error, no request, linked panels, tooltips, three dimensions, hostile names inert."""

import pytest

from browsing import HOSTILE, LABELS, blocked, requests, until

pytest.importorskip("selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

INK = """
const canvas = arguments[0];
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let sum = 0;
for (let k = 3; k < data.length; k += 4) if (data[k]) sum += data[k] + data[k - 1] * 3 + data[k - 2] * 7 + k % 1013;
return sum;
"""


def canvases(browser, kind, above=False):
    return browser.find_elements(By.CSS_SELECTOR, f"figure.{kind} canvas{'.above' if above else ':not(.above)'}")


def ink(browser, canvas):
    """A number that changes with what is drawn."""
    return browser.execute_script(INK, canvas)


def view(browser):
    return [float(x) for x in browser.execute_script("return document.documentElement.dataset.view").split()]


def centred(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


@pytest.mark.slow
def test_page__no_error_no_request_and_every_panel_is_drawn(opened, shown):
    assert opened.get_log("browser") == []
    assert [url for url in requests(opened) if not url.startswith("data:")] == [shown[1].as_uri()]
    boxes = opened.find_elements(By.CSS_SELECTOR, "figure canvas:not(.above)")
    assert len(boxes) > 10
    assert all(ink(opened, one) > 0 for one in boxes)


@pytest.mark.slow
def test_page__hostile_names_are_text(opened):
    assert opened.execute_script("return window.hacked") is None
    assert opened.find_elements(By.CSS_SELECTOR, "main img, main svg, main b:not(.tip b), main u, main a") == []
    words = opened.execute_script("return document.body.textContent")
    for name in (*HOSTILE, *LABELS):
        assert name in words
    policy = opened.find_element(By.CSS_SELECTOR, "meta[http-equiv]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    # Whatever would be added to the page: the policy lets it neither run nor ask.
    added = '<img src="https://example.org/x.png" onerror="window.hacked=9">'
    opened.execute_script("document.body.insertAdjacentHTML('beforeend', arguments[0])", added)
    until(lambda: any("Content Security Policy" in entry["message"] for entry in opened.get_log("browser")))
    assert opened.execute_script("return window.hacked") is None
    assert blocked(opened) == ["csp"]


def test_page__zoom_of_one_panel_moves_all_others_and_comes_back(opened):
    whole = view(opened)
    lines = canvases(opened, "lines")
    before = [ink(opened, one) for one in lines]
    above = canvases(opened, "lines", above=True)[0]
    centred(opened, above)
    begun = ActionChains(opened).move_to_element_with_offset(above, -100, 0).click_and_hold()
    begun.move_by_offset(200, 0).release().perform()
    until(lambda: view(opened) != whole)
    low, high = view(opened)
    share = 200 / (above.size["width"] - 76)
    assert (high - low) / (whole[1] - whole[0]) == pytest.approx(share, rel=0.02)
    until(lambda: all(ink(opened, one) != was for one, was in zip(lines, before, strict=True)))
    ActionChains(opened).double_click(above).perform()
    until(lambda: view(opened) == whole)
    until(lambda: [ink(opened, one) for one in lines] == before)


def test_page__hover_tells_values_and_marks_the_moment_everywhere(opened):
    tip = opened.find_element(By.CSS_SELECTOR, ".tip")
    above = canvases(opened, "lines", above=True)
    flat = canvases(opened, "map2", above=True)[0]
    empty = ink(opened, above[-1]), ink(opened, flat)
    centred(opened, above[0])
    ActionChains(opened).move_to_element_with_offset(above[0], -200, 0).perform()
    until(tip.is_displayed)
    assert HOSTILE[0] in tip.text
    assert "time" in tip.text
    until(lambda: ink(opened, above[-1]) != empty[0] and ink(opened, flat) != empty[1])


@pytest.mark.slow
def test_page__the_map_in_three_dimensions_turns(opened):
    (solid,) = canvases(opened, "map3")
    (above,) = canvases(opened, "map3", above=True)
    centred(opened, above)
    before = ink(opened, solid)
    ActionChains(opened).move_to_element(above).click_and_hold().move_by_offset(90, 30).release().perform()
    until(lambda: ink(opened, solid) != before)


def test_page__colours_follow_the_choice(opened):
    (solid,) = canvases(opened, "map3")
    before = ink(opened, solid)
    select = opened.find_element(By.CSS_SELECTOR, "nav select")
    options = [one.text for one in select.find_elements(By.TAG_NAME, "option")]
    assert options[0] == "time"
    assert "<u>activity" in options
    select.find_elements(By.TAG_NAME, "option")[0].click()
    until(lambda: ink(opened, solid) != before)


@pytest.mark.slow
def test_page__fits_a_phone_and_a_sheet_of_paper(opened):
    try:
        size = {"width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": True}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        until(lambda: opened.execute_script("return window.innerWidth") == 375)
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 375
        for one in opened.find_elements(By.CSS_SELECTOR, "figure"):
            assert one.size["width"] <= 375
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    printed = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert len(printed["data"]) > 20_000
