"""`statestore catalogue` with a registry: the versions of a product, with who made each and why."""

from pathlib import Path

import pytest

from processor.cli.main import main

ENTITIES = "user: {key: [id], columns: {id: int, name: string}}"


@pytest.mark.rest
def test_the_page_of_a_product_lists_its_versions(
    tmp_path: Path, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_REGISTRY", postgres_url)
    registry = ["--registry-schema", schema]
    definitions, site = tmp_path / "d", tmp_path / "site"
    definitions.mkdir()
    (definitions / "entities.yaml").write_text(ENTITIES)
    (definitions / "p.yaml").write_text("{product: p, root: user, fields: [id]}")
    (definitions / "q.yaml").write_text("{product: q, root: user}")
    apply = ["apply", "--definitions", str(definitions), *registry]
    assert main([*apply, "--why", "the <first>"]) == 0
    (definitions / "p.yaml").write_text("{product: p, root: user, fields: [id, name]}")
    assert main([*apply, "--why", "with names"]) == 0
    assert main(["pause", "p", "--why", "a pause", *registry]) == 0
    (definitions / "p.yaml").write_text("{product: p, root: user, fields: [name], description: worded}")
    (definitions / "q.yaml").write_text("{product: q, root: user, description: worded}")
    assert main(["catalogue", str(definitions), "--to", str(site), "--no-price", *registry]) == 0
    page, other = ((site / "products" / f"{name}.html").read_text() for name in "pq")
    assert "Version 2 is paused." in page
    assert "These definitions are not applied yet. `apply` makes version 3: fields.id: removed" in page
    assert page.index("with names") < page.index("the &lt;first&gt;")
    assert "Version 1 is live." in other
    assert "not applied yet" not in other
    (definitions / "q.yaml").write_text("{product: q, root: user, publish: {quiet: 2 s}}")
    assert main(["catalogue", str(definitions), "--to", str(site), "--no-price", *registry]) == 0
    assert "`apply` keeps version 1: " in (site / "products" / "q.html").read_text()
