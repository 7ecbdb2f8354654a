"""The page of generated scenarios."""

from html import unescape
from re import sub

from small_scenarios import CONFIG, THROUGH, oil_and_shares

from torchcommodity.report import ReportData, describe_evaluation, scenarios_html
from torchcommodity.scenarios import evaluate_scenarios, fit_scenarios


def test_scenarios_html_shows_distances_and_paths(report: ReportData) -> None:
    panel = oil_and_shares()
    model = fit_scenarios(panel, CONFIG, through=THROUGH)
    evaluation = evaluate_scenarios(model, panel, paths=8)
    page = scenarios_html(model.sample(5), evaluation, model.record, report.run)
    text = unescape(sub(r"<[^>]+>", " ", page.partition("<header")[2].partition("</main>")[0]))
    assert "Synthetic scenarios: WTI, BRENT" in text
    assert "5 paths of 70 rows" in text
    assert describe_evaluation(evaluation) in text
    assert page.count('id="chart-paths-') == 2
    assert 'id="chart-clustering"' in page
