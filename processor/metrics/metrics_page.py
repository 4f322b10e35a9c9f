"""The tables of docs/metrics.md, made from the list."""

from itertools import groupby

from processor.metrics.metrics import LANDING_METRICS, METRICS

BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def metrics_page(page: str) -> str:
    """The page with the tables of the present list between its two marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{_tables()}\n{END}{rest.partition(END)[2]}"


def _tables() -> str:
    lines = []
    for group, metrics in groupby((*METRICS, *LANDING_METRICS), lambda metric: metric.group):
        lines += [f"### {group}", "", "| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| `{m.name}` | {m.kind} | {m.unit} | {', '.join(f'`{label}`' for label in m.labels)} | {m.meaning} |"
            for m in metrics
        ]
        lines.append("")
    return "\n".join(lines)
