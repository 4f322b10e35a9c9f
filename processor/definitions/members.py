"""The keys of the mappings that authors write, each with its meaning. The readers know no other keys, and the JSON Schemas that
editors use (processor/editors) have exactly these. Pure.
"""

from collections.abc import Mapping
from typing import Final

Members = Mapping[str, str]
"""The keys of a mapping, in their order: key -> meaning, with the default."""

NOTE: Final[Members] = {
    "description": "Words for readers; the pages of `statestore catalogue` show them.",
    "owner": "The team or the person that answers for it, for readers.",
}
ENTITY: Final[Members] = {
    "topic": "The Kafka topic of the changes. Default: the name of the entity.",
    "key": "The columns of the primary key, in order. Each is a declared column, not json and not an array.",
    "columns": "Columns with their types, or with `{type: T, compare: ci, description: text}`. The job stores "
    "other columns too, and passes them through as they came.",
    "shards": "The number of partitions of the table for the rows; it never changes later. Default: 1.",
    "format": "The form of the values. Default: each record shows its own form.",
    "table": "The table whose records count, `orders` or `public.orders`; the job ignores other tables in the topic. Default: "
    "all records of the topic.",
    "deleted": "The member of plain and flattened rows that says a delete, `{column: op_type, values: [D]}`, or several of them. "
    "Default: a null value, and Debezium's own members.",
    "decimals": "The form of text in decimal and float columns without a schema, for all or by column: text is digits "
    "(decimal.handling.mode string), bytes is Base64 (precise). Default: the first clear record of a decimal(p,s) decides.",
    "truncate": "What the job does when the source empties the table. Default: refuse, which stops the job.",
    "keep": "The columns that rows store: all, or only the declared ones. Default: that of the file, else all.",
    "source": "The table in the source database, `schema.table`, for `verify --source`. Default: the end of the topic's name.",
    "transactions": "The topic of the connector's transaction metadata: how many records each transaction has. Default: that of "
    "the file, else none.",
    "unavailable": "The unavailable.value.placeholder of the connector. Default: that of the file, else Debezium's.",
    "absent": "What declared columns have that a record lacks, for all or by column: null, or keep for the stored value. "
    "Default: null, and `status` names them.",
    **NOTE,
}
COLUMN: Final[Members] = {
    "type": "The type of the column. `[]` makes an array.",
    "compare": "How its text compares: ci (upper and lower case are one), trimmed (spaces at the end do not count), or a list of "
    "both. Default: by code point.",
    "not_null": "true: the source has no null in the column, so null means a value that it did not send, and the stored value "
    "stays. Default: false.",
    "description": NOTE["description"],
}
FLAG: Final[Members] = {
    "column": "The member: a column, or a path below one, `_cdc.op`.",
    "values": "The values that say a delete. Default: every value but null, empty text and false.",
}
_WHERE: Final[Members] = {
    "where": "The rows that count: an SQL condition. At the root: the rows that have a document.",
}
_SHOWN: Final[Members] = {
    "fields": "The members of the object: a list of columns, or a mapping `name: expression`. Default: the whole row.",
    "value": "One expression in place of an object; for a list, a list of values; an aggregate such as count(*).",
    "join": "Joins that `fields`, `value`, `where` and `order_by` of this level use, and that show nothing themselves.",
    "embed": "Joins that the document shows under their names.",
}
PRODUCT: Final[Members] = {
    "product": "The name of the product.",
    "root": "The entity at the top: one document for each of its rows.",
    "topic": "The Kafka topic of the documents. Default: the name of the product.",
    "format": "The form of the documents in the topic. Default: json.",
    "publish": "When a document goes out, once its root has changed. Default: with the batch of the change.",
    "compare": "How columns compare in this product, `{entity: {column: ci}}`, whatever entities.yaml says. Default: as it says.",
    **NOTE,
    **_WHERE,
    **_SHOWN,
    "sql": "The whole product as one SELECT, in place of root, fields, join and embed.",
}
JOIN: Final[Members] = {
    "one": "The joined entity: an object, or null without a match.",
    "many": "The joined entity: a list, empty without a match.",
    "on": "Child column: parent column, for one or several. `column[]` on one side joins by the elements of an array.",
    "strong": "true: read the join without an index. Default: false.",
    **_WHERE,
    "required": "true: without a match the row above is left out. Default: false, a left join.",
    "order_by": "The order of the rows: columns or expressions, `-` before one for descending. Default: the primary key.",
    "limit": "The longest list. Default: all rows.",
    "total": "true: add NAME_total, the number of rows before the limit. Default: false.",
    **_SHOWN,
}
PUBLISH: Final[Members] = {
    "transactions": "whole: wait until each source transaction that touched the root is complete. Its tables name the topic "
    "of the connector's transaction metadata with `transactions`.",
    "quiet": "Wait until the root has not changed for so long, e.g. `2 s`.",
    "every": "At most one message of a root in so long, e.g. `30 s`.",
    "at_most": "No document waits longer, whatever the others say. Default: 60 s, or `every` where that is longer.",
}
TEST: Final[Members] = {
    "test": "The name of the test.",
    "product": "The product. Default: the only one.",
    "given": "Rows by entity, stored first.",
    "changes": "Then lines of recorded topics, in order. Between them and at the end, `after: 2 s` lets time pass.",
    "expect": "Whole documents by their keys; null for no document.",
    "contains": "Some members of documents by their keys.",
}
PAUSE: Final[Members] = {
    "after": "So much time passes, e.g. `2 s`, before the next changes come, or before the test looks at the documents.",
}
