"""Writes the files that are made from the lists: `python -m processor.metrics.generate_files`, from the root of a checkout."""

from pathlib import Path

from processor.metrics.alarm_files import cloudwatch_alarms, prometheus_rules
from processor.metrics.grafana_dashboard import grafana_dashboard
from processor.metrics.metrics_page import metrics_page

PAGE, DASHBOARD = Path("docs/metrics.md"), Path("infra/grafana/dashboards/statestore.json")
CLOUDWATCH, RULES = Path("infra/modules/alarms/job_alarms.json"), Path("infra/prometheus/alerts.yaml")


def generated(root: Path) -> dict[Path, str]:
    """Each file, and the text that it must have."""
    page = root / PAGE
    return {
        page: metrics_page(page.read_text(encoding="utf-8")),
        root / DASHBOARD: grafana_dashboard(),
        root / CLOUDWATCH: cloudwatch_alarms(),
        root / RULES: prometheus_rules(),
    }


if __name__ == "__main__":
    for path, text in generated(Path()).items():
        path.write_text(text, encoding="utf-8")
