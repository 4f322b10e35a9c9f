"""Products given as SQL: each becomes the tree that an author would have written."""

import json
import re
from pathlib import Path
from textwrap import indent

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.product import Product

ROOT = Path(__file__).parents[4]
ENTITIES = (ROOT / "examples" / "github" / "entities.yaml").read_text(encoding="utf-8")

TWINS = {
    "each join is a nested list": (
        """
        select u.email, u.username as name, s.repo_name, p.title, p.status, i.verified
        from "user" u
        left join star s on s.username = u.username
        left join pull_request p on p.author = u.username
        left join payment_info i on i.user_id = u.id
        """,
        """
        root: user
        fields: {email: email, name: username}
        embed:
          s: {many: star, on: {username: username}, fields: [repo_name]}
          p: {many: pull_request, on: {author: username}, fields: [title, status]}
          i: {many: payment_info, on: {user_id: id}, fields: [verified]}
        """,
    ),
    "a join on its whole key is one, below the table that its ON names": (
        """
        select u.email, s.created_at, r.description from "user" u
        left join star s on u.username = s.username
        left join repo r on (r.owner = s.repo_owner and (r.name) = s.repo_name)
        """,
        """
        root: user
        fields: [email]
        embed:
          s:
            many: star
            on: {username: username}
            fields: [created_at]
            embed: {r: {one: repo, on: {owner: repo_owner, name: repo_name}, fields: [description]}}
        """,
    ),
    "a table in between shows what is below it": (
        """
        select u.email, r.name from "user" u
        left join star s on u.username = s.username left join repo r on r.name = s.repo_name
        """,
        """
        root: user
        fields: [email]
        embed:
          s:
            many: star
            on: {username: username}
            fields: []
            embed: {r: {many: repo, on: {name: repo_name}, fields: [name]}}
        """,
    ),
    "an inner join is required, and shown where something of it is selected": (
        """
        select email, p.title from "user" u
        inner join pull_request p on p.author = u.username
        join payment_info as i on i.user_id = u.id and i.verified
        where p.status = 'open' or p.status = 'new'
        """,
        """
        root: user
        fields: [email]
        join: {i: {many: payment_info, on: {user_id: id}, where: verified, required: true, fields: []}}
        embed:
          p:
            many: pull_request
            on: {author: username}
            where: status = 'open' OR status = 'new'
            required: true
            fields: [title]
        """,
    ),
    "conditions belong to their tables": (
        """
        select u.email, p.title from "user" u
        left join pull_request p on p.author = u.username and p.status <> 'draft' and (p.index > 3 or p.title is null)
        where u.id > 7 and u.email like '%@example.org'
        """,
        """
        root: user
        where: (id > 7) and (email LIKE '%@example.org')
        fields: [email]
        embed:
          p:
            many: pull_request
            on: {author: username}
            where: (status <> 'draft') and (index > 3 OR title IS NULL)
            fields: [title]
        """,
    ),
    "expressions over one table, and constants": (
        """
        select upper(name) as name, 1 as one, star_count::text || '!' as "Stars" from repo -- all of them
        """,
        """
        root: repo
        fields: {name: upper(name), one: 1, Stars: CAST(star_count AS TEXT) || '!'}
        """,
    ),
    "a star is all declared columns": (
        'select u.*, i.verified as ok, i.* from "user" u left join payment_info i on i.user_id = u.id',
        """
        root: user
        fields: [id, email, username, registered_at]
        embed:
          i: {many: payment_info, on: {user_id: id}, fields: {ok: verified, id: id, user_id: user_id, verified: verified}}
        """,
    ),
    "a star alone is all columns of all tables, each table under its name": (
        'select * from payment_info left join "user" on id = user_id'.replace("on id", 'on "user".id'),
        """
        root: payment_info
        fields: [id, user_id, verified]
        embed: {user: {many: user, on: {id: user_id}, fields: [id, email, username, registered_at]}}
        """,
    ),
    "an order belongs to the list whose columns it names": (
        """
        select u.email, p.title as "Name", s.repo_name from "user" u
        left join pull_request p on p.author = u.username left join star s on s.username = u.username
        order by p.created_at desc nulls last, s.repo_owner, "Name", -p.index, -p.index desc nulls last
        """,
        """
        root: user
        fields: [email]
        embed:
          p:
            many: pull_request
            on: {author: username}
            order_by: [-created_at, title, (-index), -(-index)]
            fields: {Name: title}
          s: {many: star, on: {username: username}, order_by: [repo_owner], fields: [repo_name]}
        """,
    ),
    "a statement that stores the rows, schemas and a right join": (
        """
        create or replace view public.reports as
        select u.email, s.repo_name from public.star as s
        right join public."user" u on s.username = u.username emit changes;
        """,
        """
        root: user
        fields: [email]
        embed:
          s: {many: star, on: {username: username}, fields: [repo_name]}
        """,
    ),
    "an insert of the rows of a query in brackets, with brackets around its joins": (
        """
        insert into emails (select u.email, i.verified
        from (("user" u join payment_info i on (i.id = u.id))))
        """,
        """
        root: user
        join: {i: {one: payment_info, on: {id: id}, required: true}}
        fields: {email: email, verified: i.verified}
        """,
    ),
    "with, and a table for each name of it": (
        """
        with source as (select * from "user"), named as (select id as user_id, upper(username) as name from source where id > 7),
        paid as (select user_id, count(*) as n from payment_info group by 1)
        select named.name, paid.n from named left join paid using (user_id)
        """,
        """
        root: user
        where: id > 7
        join: {paid: {many: payment_info, on: {user_id: id}}}
        fields: {name: upper(username), n: (case when count(paid) > 0 then count(paid) end)}
        """,
    ),
    "the inner table of which each row has another one is the root": (
        """
        select r.name || s.username as text from repo r join star s on s.repo_owner = r.owner and s.repo_name = r.name
        """,
        """
        root: star
        join: {r: {one: repo, on: {owner: repo_owner, name: repo_name}, required: true}}
        fields: {text: r.name || username}
        """,
    ),
    "the first row of each group is a group with first values": (
        """
        select author, title from (select *, row_number() over (partition by author order by created_at desc) as n
        from pull_request where author is not null) p where n = 1
        """,
        """
        root: {group: pull_request, by: [author], where: author IS NOT NULL}
        fields: {author: author, title: first(pull_request.title ORDER BY pull_request.created_at DESC)}
        """,
    ),
    "a column with nulls makes two columns of a group's key": (
        "select status, count(*) from pull_request group by status",
        """
        root: {group: pull_request, by: {status: "coalesce(status, '')", status_null: status is null}}
        fields: {status: (CASE WHEN NOT status_null THEN status END), count: count(pull_request)}
        """,
    ),
    "a table joined to itself": (
        'select a.email, b.email from "user" a left join "user" b on b.id = a.id and b.username = a.username',
        """
        root: user
        fields: [email]
        embed: {b: {many: user, on: {id: id, username: username}, fields: [email]}}
        """,
    ),
}


def load_product(body: str) -> Product:
    return load({"entities.yaml": ENTITIES, "p.yaml": f"product: p\n{body}"}).products["p"]


def from_sql(query: str) -> Product:
    return load_product("sql: |\n" + indent(query.strip(), "  "))


def dedented(tree: str) -> str:
    return "\n".join(line[8:] for line in tree.splitlines())


@pytest.mark.parametrize(("query", "tree"), TWINS.values(), ids=TWINS)
def test_a_query_is_the_tree_that_it_means(query: str, tree: str) -> None:
    assert from_sql(query) == load_product(dedented(tree))


@pytest.mark.parametrize(("query", "_tree"), TWINS.values(), ids=TWINS)
def test_a_query_is_described_as_a_tree_that_is_read_back(query: str, _tree: str) -> None:
    product = from_sql(query)
    described = json.dumps(describe_product(product))
    assert "select" not in described
    assert load({"entities.yaml": ENTITIES, "p.json": described}).products["p"] == product


def test_the_two_products_of_the_page_are_equal() -> None:
    page = (ROOT / "docs" / "definitions.md").read_text(encoding="utf-8")
    written, tree = re.findall(r"^```yaml\n(product: user_overview\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = [load({"entities.yaml": ENTITIES, "p.yaml": text}).products for text in (written, tree)]
    assert found[0] == found[1]


def test_a_product_of_sql_has_a_topic_of_its_own() -> None:
    product = load_product("topic: others\nsql: select name from repo")
    assert (product.topic, product.root) == ("others", "repo")


def test_an_error_has_its_line_in_the_query_in_any_yaml_style() -> None:
    for text, line in (("sql: select nam from repo", 2), ("sql: |\n\n  select\n    nam\n  from repo", 5)):
        with pytest.raises(DefinitionError) as caught:
            load_product(text)
        assert [problem.line for problem in caught.value.problems] == [line]
