"""The rules of the first schema, as SQL: history, versions, values that never change, columns that entities declare, no product
over a join that nothing serves, no other content under a product's version, and the numbers that fence earlier runs.

They hold for every edit, psql's included. A broken rule is an integrity error (SQLSTATE 23000). The database also refuses every
edit of a transaction that did not announce it. The repository announces its edits (`registry.repository.write.sign`). An operator
announces an edit by `SELECT edit_by_hand('the reason')`, and the other rules still hold.
"""

from registry.migrations.edit_rules import EDIT_RULES
from registry.migrations.join_rules import JOIN_RULES
from registry.migrations.lasting_values import LASTING_VALUES
from registry.migrations.life_rules import LIFE_RULES
from registry.migrations.product_rules import PRODUCT_RULES
from registry.migrations.run_rules import RUN_RULES

FIRST_RULES = (*EDIT_RULES, *LASTING_VALUES, *LIFE_RULES, *PRODUCT_RULES, *JOIN_RULES, *RUN_RULES)
"""The statements, in the order in which they run after the tables exist."""
