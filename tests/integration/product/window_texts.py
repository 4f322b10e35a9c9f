"""Random queries with windows over one table. Where PostgreSQL may number equal rows freely, the order ends with the key."""

from random import Random

from tests.integration.product.random_trees import COLUMNS, KEYS

_AGGREGATES = ("count(*)", "sum({number})", "min({number})", "max({number})", "count({column})")


class Windows:
    """Writes one query."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._table = rng.choice(["users", "orders", "line", "address", "item"])
        self._columns, self._key = COLUMNS[self._table], KEYS[self._table]
        self._name = rng.choice(["", "x"])
        self._before = f"{self._name}." if self._name else ""
        parts = rng.sample([name for name, kind in self._columns.items() if kind != "bool"], rng.choice([1, 1, 2]))
        self._parts = parts[:1] if {*parts} >= {*self._key} and rng.random() < 0.7 else parts

    def query(self) -> str:
        rng, of = self._rng, self._before
        where = [f"{of}{name} is not null" for name in self._parts if name not in self._key]
        if rng.random() < 0.4:
            where.append(f"({self._number()} > {rng.choice([-1, 0, 1])} or {self._column()} is null)")
        terms = [of + name for name in self._key] + [f"{self._window()} as w{n}" for n in range(rng.choice([1, 2, 3]))]
        text = f"select {', '.join(terms)} from {self._table} {self._name}"
        text += f" where {' and '.join(where)}" if where else ""
        match rng.randrange(6):
            case 0 | 1:
                return f"select y.*, y.w0 is null as z from ({text}) y where y.w0 is not null"
            case 2:
                return f"with y as ({text}) select {', '.join(self._key)}, w0 from y where w0 is not null"
        return text

    def _window(self) -> str:
        rng = self._rng
        parts = "partition by " + ", ".join(self._before + name for name in self._parts)
        frame = " rows between unbounded preceding and current row"
        match rng.randrange(8):
            case 0:
                return f"row_number() over ({parts} order by {self._order(keys=True)})"
            case 1:
                return f"rank() over ({parts} order by {self._order(keys=False)})"
            case 2:
                return f"dense_rank() over ({parts} order by {self._before}{self._key[-1]} {rng.choice(['', 'desc'])})"
            case 3 | 4:
                call = rng.choice(["lag", "lead", "first_value"])
                return f"{call}({self._column()}) over ({parts} order by {self._order(keys=True)})"
        call = rng.choice(_AGGREGATES).format(number=self._number(), column=self._column())
        ordered = rng.choice([
            "", f" order by {self._order(keys=False)}", f" order by {self._order(keys=True)}{frame}",
        ])  # fmt: skip
        return f"{call} over ({parts}{ordered})"

    def _number(self) -> str:
        numbers = [name for name, kind in self._columns.items() if kind.partition("(")[0] in ("int", "decimal")]
        return self._before + self._rng.choice(numbers)

    def _column(self) -> str:
        return self._before + self._rng.choice(list(self._columns))

    def _order(self, *, keys: bool) -> str:
        rng = self._rng
        terms = [self._column() for _ in range(rng.choice([1, 1, 2]))]
        if rng.random() < 0.2:
            terms[0] = f"coalesce({self._number()}, 0)"
        ways = ["", " desc", " desc nulls last", " nulls first"]
        ordered = [term + rng.choice(ways) for term in terms]
        return ", ".join(ordered + [self._before + name + rng.choice(ways[:2]) for name in self._key] * keys)
