"""Results in notebooks: their HTML, and everything of ArviZ on their DataTree."""

from __future__ import annotations

import html.parser

import arviz_plots
import arviz_stats
import matplotlib.pyplot as plt
import numpy as np
import pytest

import l2calib as l2
from l2calib.display import html as markup
from l2calib.display.numbers import rounded

NASTY = "<script>alert('a' & \"b\")</script>"
BANDS = [f"{name}{end}" for name in ("model", "system", "bias") for end in ("", "_low", "_high")]


def plane(u, v, a, b):
    return a * u + b * v


@pytest.fixture(scope="module")
def result():
    u, v = np.random.default_rng(2).uniform(size=(2, 20))
    y = u + 2 * v + np.sin(5 * u) + 0.1 * np.random.default_rng(3).standard_normal(20)
    prior = {"a": l2.Uniform(-5, 5), "b": l2.Normal(0, 5)}
    problem = l2.Problem(plane, {"u": u, "v": v, NASTY: y}, NASTY, {"u": (0, 1), "v": (-1, 2)}, prior)
    return l2.calibrate(problem, "nlm", seed=4)


@pytest.fixture(scope="module")
def tree(result, tmp_path_factory):
    """As it is after a journey through a file."""
    path = tmp_path_factory.mktemp("tree") / "nlm.nc"
    result.save(path)
    return l2.load(path).to_datatree()


class Page(html.parser.HTMLParser):
    """Tags that are opened and closed in order, and the text between them."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f"{data}|"


def test_pages_are_well_formed_and_hold_the_numbers(result):
    mean, sd = result.summary().loc["a", ["mean", "sd"]]
    shown = {
        "problem": (result.problem, ["20 observations", "Uniform(low=-5, high=5)", "v|-1|2|"]),
        "calibration": (result, ["Calibration by nlm: ok", f"a|{rounded(mean, sd)}|{rounded(sd, sd)}|"]),
        "comparison": (l2.calibration.Comparison([result]), ["nlm|b|", "1 methods"]),
        "prediction": (result.predict({"u": np.full(12, 0.5), "v": np.zeros(12)}), ["95% bands", "and 2 more points"]),
    }
    for what, (thing, words) in shown.items():
        page = Page(thing._repr_html_())
        for word in words:
            assert word in page.text, (what, word)


def test_what_users_write_is_escaped(result):
    page = Page(result.problem._repr_html_())
    assert "script" not in {tag for tag, _ in page.tags}
    assert NASTY in page.text.replace("|", "")
    assert Page(markup.table((NASTY,), [(NASTY,)])).text == f"{NASTY}|{NASTY}|"


def test_colours_are_those_of_the_notebook(result):
    for _, attributes in Page(result._repr_html_()).tags:
        style = dict(part.split(":") for part in attributes.get("style", "").split(";") if part)
        assert style.get("color", "inherit") == "inherit"
        assert style.get("background", "none") == "none"


def test_the_tree_holds_the_marginal_densities(result, tree):
    marginals = tree["marginals"]
    assert marginals["density"].dims == ("parameter", "grid")
    for name, low in (("a", -5), ("b", -np.inf)):
        here = marginals.sel(parameter=name)
        value, density = result.marginal(name)
        np.testing.assert_array_equal(here["value"], value)
        np.testing.assert_array_equal(here["density"], density)
        assert float(here["value"][0]) > low
    np.testing.assert_allclose(marginals["prior"].sel(parameter="a"), 0.1)
    at = float(marginals["value"].sel(parameter="b")[7])
    expected = np.exp(-((at / 5) ** 2) / 2) / (5 * np.sqrt(2 * np.pi))
    assert float(marginals["prior"].sel(parameter="b")[7]) == pytest.approx(expected)


def test_the_tree_holds_a_profile_along_every_input(result, tree):
    profile = tree["profiles/v"]
    assert list(profile.dataset.data_vars) == ["u", "v", *BANDS]
    assert profile.sizes == {"point": 121}
    np.testing.assert_allclose(profile["v"], np.linspace(-1, 2, 121))
    np.testing.assert_array_equal(profile["u"], 0.5)
    again = result.predict({"u": [0.5], "v": [2.0]}).to_frame()
    np.testing.assert_allclose([float(profile[name][-1]) for name in BANDS], again[BANDS].iloc[0], rtol=1e-12)
    assert set(tree["profiles"].children) == {"u", "v"}
    assert profile.attrs["level"] == 0.95


def test_the_tree_holds_the_fit_at_the_observations(result, tree):
    fitted = tree["fitted"]
    assert fitted.sizes == {"observation": 20}
    np.testing.assert_array_equal(fitted["u"], result.problem.x[:, 0])
    assert list(fitted.dataset.data_vars) == ["u", "v", *BANDS]
    # The system follows the observations more closely than the model does: it has the bias besides.
    gaps = [np.square(fitted[name] - result.problem.y).mean() for name in ("system", "model")]
    assert gaps[0] < gaps[1]


def test_arviz_summarises_the_tree(result, tree):
    table = arviz_stats.summary(tree, ci_prob=0.95, ci_kind="eti", round_to="none")
    ours = result.summary()
    assert list(table.index) == ["a", "b"]
    for name in ("a", "b"):
        # The standard errors of a mean and of a quantile of 4,000 draws; five of them.
        sd = ours.loc[name, "sd"]
        assert table.loc[name, "mean"] == pytest.approx(ours.loc[name, "mean"], abs=5 * sd / np.sqrt(4000))
        allowed = 5 * np.sqrt(0.025 * 0.975 / 4000) / 0.0584 * sd
        low, high = (column for column in table.columns if column.startswith("eti95"))
        assert table.loc[name, low] == pytest.approx(ours.loc[name, "q2.5"], abs=allowed)
        assert table.loc[name, high] == pytest.approx(ours.loc[name, "q97.5"], abs=allowed)


@pytest.fixture
def pyplot():
    """ArviZ draws with pyplot, which keeps its figures until they are closed."""
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield plt
    plt.close("all")
    plt.switch_backend(before)


def words(figure):
    return {text.get_text() for axes in figure.axes for text in [axes.title, axes.xaxis.label, *axes.texts]}


@pytest.mark.parametrize(
    ("draw", "options"),
    [
        ("plot_dist", {"ci_prob": 0.95, "ci_kind": "eti"}),
        ("plot_forest", {"ci_probs": (0.5, 0.95), "ci_kind": "eti"}),
        ("plot_pair", {}),
        ("plot_trace", {}),
    ],
)
def test_arviz_draws_the_tree(tree, pyplot, draw, options):
    getattr(arviz_plots, draw)(tree, backend="matplotlib", **options)
    figure = pyplot.gcf()
    assert {"a", "b"} <= words(figure)
    figure.canvas.draw()


def test_names_with_a_slash_travel_too(tree):
    assert tree.attrs["response"] == NASTY
    assert NASTY.replace("/", "_") in tree["observed_data"]
