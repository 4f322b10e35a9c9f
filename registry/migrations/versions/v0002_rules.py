"""The rules that hold for every edit, psql's included: history, versions, what never changes, and no product over a
join that is not served. A broken rule is an integrity error (SQLSTATE 23000)."""

from alembic import op

revision = "v0002"
down_revision = "v0001"

EDITED = ("entities", "assignments", "joins", "access_paths", "products", "product_joins")
"""The tables whose edits are kept in the history and raise the version."""

RECORD_EDIT = """
CREATE FUNCTION record_edit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  before json := CASE WHEN TG_OP <> 'INSERT' THEN row_to_json(OLD) END;
  after json := CASE WHEN TG_OP <> 'DELETE' THEN row_to_json(NEW) END;
BEGIN
  IF before::text IS DISTINCT FROM after::text THEN
    INSERT INTO history (version, at, who, why, entry, operation, old, new)
    VALUES (edit_version(), clock_timestamp(),
      coalesce(nullif(current_setting('statestore.who', true), ''), current_user),
      nullif(current_setting('statestore.why', true), ''),
      TG_TABLE_NAME, lower(TG_OP), before, after);
  END IF;
  RETURN NULL;
END $$
"""

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on %: %', lower(TG_OP), TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = '23000';
END $$
"""

ENTITY_STAYS = """
CREATE FUNCTION entity_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.name, NEW.key, NEW.shards, NEW.created_version)
      IS DISTINCT FROM (OLD.name, OLD.key, OLD.shards, OLD.created_version)
    OR EXISTS (SELECT FROM unnest(OLD.key) AS k WHERE NEW.columns ->> k IS DISTINCT FROM OLD.columns ->> k)
  THEN
    RAISE EXCEPTION 'entity %: name, key, types of key columns and shards never change: rows are stored under them',
      OLD.name USING ERRCODE = '23000';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON entities FOR EACH ROW EXECUTE FUNCTION entity_stays()
"""

ASSIGNMENT_STAYS = """
CREATE FUNCTION assignment_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.entity, NEW.slot, NEW.columns) IS DISTINCT FROM (OLD.entity, OLD.slot, OLD.columns) THEN
    RAISE EXCEPTION 'entity % slot %: an assignment changes only its state: retire it, free it, and assign anew',
      OLD.entity, OLD.slot USING ERRCODE = '23000';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON assignments FOR EACH ROW EXECUTE FUNCTION assignment_stays()
"""

META_STAYS = """
CREATE FUNCTION meta_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.slots <> OLD.slots OR NEW.version < OLD.version THEN
    RAISE EXCEPTION 'meta: the number of slots never changes, the version only rises' USING ERRCODE = '23000';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON meta FOR EACH ROW EXECUTE FUNCTION meta_stays();
CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON meta EXECUTE FUNCTION refuse('the registry needs it')
"""

SLOTS_STAY = """
CREATE FUNCTION slots_stay() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT FROM meta) THEN
    RAISE EXCEPTION 'slots: the table has its indexes, their number never changes' USING ERRCODE = '23000';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER stays BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON slots EXECUTE FUNCTION slots_stay()
"""

UNSERVED = """
CREATE VIEW unserved AS
SELECT product, join_id, direction, side.entity, side.columns, paths.slot, held.state
FROM product_joins
JOIN joins ON joins.id = join_id
CROSS JOIN LATERAL (VALUES ('down', child, child_columns), ('up', parent, parent_columns))
  AS side (direction, entity, columns)
JOIN entities ON entities.name = side.entity
LEFT JOIN access_paths AS paths USING (join_id, direction, entity)
LEFT JOIN assignments AS held ON held.entity = side.entity AND held.slot = paths.slot
WHERE paths.join_id IS NULL
  OR (paths.slot IS NULL AND NOT entities.key <@ side.columns)
  OR (paths.slot IS NOT NULL AND NOT (held.state = 'serving' AND held.columns <@ side.columns));
COMMENT ON VIEW unserved IS 'joins of products that no key read and no serving slot answers: always empty'
"""

NO_UNSERVED = """
CREATE FUNCTION no_unserved() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  touched text[] := ARRAY[to_jsonb(OLD) ->> 'join_id', to_jsonb(NEW) ->> 'join_id'];
  bad unserved;
BEGIN
  SELECT * INTO bad FROM unserved
  WHERE array_remove(touched, NULL) = '{}' OR join_id = ANY (touched::bigint[]) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'product %: join %, asked % of %(%), is not served (slot %, state %)', bad.product, bad.join_id,
      bad.direction, bad.entity, array_to_string(bad.columns, ', '),
      coalesce(bad.slot::text, 'none'), coalesce(bad.state, 'none')
      USING ERRCODE = '23000', HINT = 'each join of a product needs a key read or a serving slot, down and up';
  END IF;
  RETURN NULL;
END $$
"""

CHECKED = {
    "product_joins": "INSERT OR UPDATE",
    "access_paths": "INSERT OR UPDATE OR DELETE",
    "assignments": "UPDATE",
    "joins": "UPDATE",
}
"""The edits after which, at commit, no join of a product may be unserved; keys of entities never change."""


def upgrade() -> None:
    op.execute(RECORD_EDIT)
    op.execute(REFUSE)
    for table in EDITED:
        op.execute(
            f"CREATE TRIGGER recorded AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION "
            "record_edit()"
        )
        op.execute(
            f"CREATE TRIGGER kept BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse('the history would not show it')"
        )
    for table, which in (("history", "it is only added to"), ("epochs", "a boundary is never rewritten")):
        op.execute(
            f"CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} EXECUTE FUNCTION refuse('{which}')"
        )
    for rule in (ENTITY_STAYS, ASSIGNMENT_STAYS, META_STAYS, SLOTS_STAY, UNSERVED, NO_UNSERVED):
        op.execute(rule)
    for table, edits in CHECKED.items():
        op.execute(
            f"CREATE CONSTRAINT TRIGGER served AFTER {edits} ON {table} DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION no_unserved()"
        )
