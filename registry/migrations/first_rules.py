"""The rules of the first schema, as SQL: history, versions, values that never change, columns that entities declare, and no
product over a join that nothing serves.

They hold for every edit, psql's included. A broken rule is an integrity error (SQLSTATE 23000). The database also refuses every
edit of a transaction that did not announce it. The repository announces its edits (`registry.repository.write.sign`). An operator
announces an edit by `SELECT edit_by_hand('the reason')`, and the other rules still hold.
"""

EDITED = ("entities", "assignments", "joins", "access_paths", "products", "product_joins")
"""The tables whose edits go into the history and raise the version."""

ADD_ONLY = {"history": "its rows never change", "epochs": "a boundary never changes"}
"""The tables whose rows never change or go, each with the reason that Postgres gives."""

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

EDIT_BY_HAND = """
CREATE FUNCTION edit_by_hand(why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF why IS NULL OR why !~ '[^ ]' THEN
    RAISE EXCEPTION 'edit_by_hand: give the reason, for the history' USING ERRCODE = '23000';
  END IF;
  PERFORM set_config('statestore.edit', pg_current_xact_id()::text, true), set_config('statestore.why', why, true);
END $$;
COMMENT ON FUNCTION edit_by_hand IS 'allows the rest of this transaction to edit the registry; the history keeps the reason'
"""

ANNOUNCED = """
CREATE FUNCTION announced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('statestore.edit', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
    RAISE EXCEPTION '% on %: `statestore apply` edits the registry; nothing was changed', lower(TG_OP), TG_TABLE_NAME
      USING ERRCODE = '23000', HINT = 'to edit it by hand, begin a transaction with SELECT edit_by_hand(''the reason'')';
  END IF;
  RETURN NULL;
END $$
"""
"""The setting holds the number of the transaction that announced its edit: a setting that a session keeps allows nothing."""

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

HAS_RUN = """
CREATE FUNCTION has_run(entity text) RETURNS boolean LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT EXISTS (
    SELECT FROM entities WHERE name = $1 AND created_version <= (SELECT max(applied_version) FROM leases)
  )
$$;
COMMENT ON FUNCTION has_run IS 'whether some job has run with the entity, so that rows of it may be stored'
"""

ENTITY_REMAINS = """
CREATE FUNCTION entity_remains() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF has_run(OLD.name) THEN
    RAISE EXCEPTION 'entity %: a job has run with it: rows are stored under it', OLD.name USING ERRCODE = '23000';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER remains BEFORE DELETE ON entities FOR EACH ROW EXECUTE FUNCTION entity_remains()
"""

ASSIGNMENT_STAYS = """
CREATE FUNCTION assignment_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.entity, NEW.slot, NEW.columns) IS DISTINCT FROM (OLD.entity, OLD.slot, OLD.columns) THEN
    RAISE EXCEPTION 'entity % slot %: an assignment changes only its state: retire it, free it, and make another',
      OLD.entity, OLD.slot USING ERRCODE = '23000';
  END IF;
  IF NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
    ('planned', 'writing'), ('writing', 'backfilling'), ('writing', 'retiring'), ('backfilling', 'serving'),
    ('backfilling', 'retiring'), ('serving', 'retiring')
  ) THEN
    RAISE EXCEPTION 'entity % slot %: state % may not follow %', OLD.entity, OLD.slot, NEW.state, OLD.state
      USING ERRCODE = '23000', HINT = 'planned, writing, backfilling, serving, retiring; retiring may come early';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON assignments FOR EACH ROW EXECUTE FUNCTION assignment_stays()
"""

ASSIGNMENT_OF_STORED_ROWS = """
CREATE FUNCTION assignment_of_stored_rows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'planned' AND has_run(NEW.entity) THEN
      RAISE EXCEPTION 'entity % slot %: a job has run with the entity: stored rows lack the slot, so it begins as planned',
        NEW.entity, NEW.slot USING ERRCODE = '23000';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.state NOT IN ('planned', 'retiring') AND has_run(OLD.entity) THEN
    RAISE EXCEPTION 'entity % slot %: stored rows have the slot: retire it, then free it', OLD.entity, OLD.slot
      USING ERRCODE = '23000';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER of_stored_rows BEFORE INSERT OR DELETE ON assignments
  FOR EACH ROW EXECUTE FUNCTION assignment_of_stored_rows()
"""

META_STAYS = """
CREATE FUNCTION meta_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.slots, NEW.version) = (OLD.slots, OLD.version)
    AND (NEW.identity, NEW.job, NEW.table_name) IS DISTINCT FROM (OLD.identity, OLD.job, OLD.table_name)
  THEN
    RETURN NEW;  -- the binding to a job and a table is no part of a version
  END IF;
  IF NEW.slots <> OLD.slots OR NEW.version <> OLD.version + 1 OR NEW.edited_in IS NOT DISTINCT FROM OLD.edited_in THEN
    RAISE EXCEPTION 'meta: the number of slots never changes, the version only rises, by one for each edit'
      USING ERRCODE = '23000';
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
  OR (paths.slot IS NULL AND paths.edges IS NULL AND NOT entities.key <@ side.columns)
  OR (paths.edges IS NOT NULL AND NOT (paths.edges <@ side.columns AND side.columns <@ paths.edges))
  OR (paths.slot IS NOT NULL AND NOT (held.state = 'serving' AND held.columns <@ side.columns));
COMMENT ON VIEW unserved IS 'joins of products that no key read, no edges and no serving slot answer: always empty'
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
    RAISE EXCEPTION 'product %: join %, % to %(%), is not served (slot %, state %)', bad.product, bad.join_id,
      bad.direction, bad.entity, array_to_string(bad.columns, ', '),
      coalesce(bad.slot::text, 'none'), coalesce(bad.state, 'none')
      USING ERRCODE = '23000', HINT = 'each join of a product needs a key read or a serving slot, down and up';
  END IF;
  RETURN NULL;
END $$
"""

UNDECLARED = """
CREATE VIEW undeclared AS
SELECT used.* FROM (
  SELECT name, field, 'the key' FROM entities, unnest(key) AS field
  UNION ALL SELECT entity, field, 'GSI_' || slot FROM assignments, unnest(columns) AS field
  UNION ALL SELECT child, field, 'join ' || id FROM joins, unnest(child_columns) AS field
  UNION ALL SELECT parent, field, 'join ' || id FROM joins, unnest(parent_columns) AS field
) AS used (entity, field, used_by)
JOIN entities ON entities.name = used.entity
WHERE columns -> field IS NULL
  AND (used_by NOT LIKE 'join %' OR columns -> split_part(field, '[]', 1) IS NULL);
COMMENT ON VIEW undeclared IS 'columns that a key, a slot or a join uses, and their entity does not declare: always empty'
"""

NO_UNDECLARED = """
CREATE FUNCTION no_undeclared() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  entry jsonb := to_jsonb(NEW);
  bad undeclared;
BEGIN
  SELECT * INTO bad FROM undeclared
  WHERE entity IN (entry ->> 'name', entry ->> 'entity', entry ->> 'child', entry ->> 'parent') LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'entity % declares no column %, which % uses', bad.entity, bad.field, bad.used_by
      USING ERRCODE = '23000';
  END IF;
  IF doubled(ARRAY(SELECT jsonb_array_elements_text(entry -> 'key'))) THEN
    RAISE EXCEPTION 'entity %: its key names a column twice', entry ->> 'name' USING ERRCODE = '23000';
  END IF;
  RETURN NULL;
END $$
"""

NO_DOUBLED = """
CREATE FUNCTION sorted(names text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(name ORDER BY name) FROM unnest(names) AS name
$$;
CREATE FUNCTION doubled(names text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT count(*) > count(DISTINCT name) FROM unnest(names) AS name
$$;
CREATE FUNCTION no_doubled() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF doubled(NEW.columns) AND NOT EXISTS (
    SELECT FROM joins
    WHERE (child = NEW.entity AND sorted(child_columns) = sorted(NEW.columns))
      OR (parent = NEW.entity AND sorted(parent_columns) = sorted(NEW.columns))
  ) THEN
    RAISE EXCEPTION 'entity % slot %: columns % name one twice, and no join asks for that',
      NEW.entity, NEW.slot, array_to_string(NEW.columns, ', ') USING ERRCODE = '23000';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER no_doubled AFTER INSERT ON assignments DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION no_doubled()
"""
"""A slot may hold one column twice for a join that sets two columns of the other side equal to it."""

OWN_TOPIC = """
CREATE FUNCTION own_topic() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT FROM entities JOIN products USING (topic) WHERE topic = NEW.topic) THEN
    RAISE EXCEPTION 'topic %: an entity and a product have it', NEW.topic USING ERRCODE = '23000';
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
"""The edits after which Postgres checks, at commit, that every join of a product is served. Keys of entities never change."""

FIRST_RULES = (
    RECORD_EDIT,
    EDIT_BY_HAND,
    ANNOUNCED,
    REFUSE,
    *(
        f"CREATE TRIGGER announced BEFORE INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION announced()"
        for table in (*EDITED, "meta")
    ),
    *(
        f"CREATE TRIGGER recorded AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION record_edit()"
        for table in EDITED
    ),
    *(
        f"CREATE TRIGGER kept BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse('the history would not show it')"
        for table in EDITED
    ),
    *(
        f"CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} EXECUTE FUNCTION refuse('{reason}')"
        for table, reason in ADD_ONLY.items()
    ),
    ENTITY_STAYS,
    HAS_RUN,
    ENTITY_REMAINS,
    ASSIGNMENT_STAYS,
    ASSIGNMENT_OF_STORED_ROWS,
    META_STAYS,
    SLOTS_STAY,
    UNSERVED,
    NO_UNSERVED,
    *(
        f"CREATE CONSTRAINT TRIGGER served AFTER {edits} ON {table} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION no_unserved()"
        for table, edits in CHECKED.items()
    ),
    UNDECLARED,
    NO_UNDECLARED,
    *(
        f"CREATE CONSTRAINT TRIGGER declared AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION no_undeclared()"
        for table in ("entities", "assignments", "joins")
    ),
    NO_DOUBLED,
    OWN_TOPIC,
    *(
        f"CREATE CONSTRAINT TRIGGER own_topic AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION own_topic()"
        for table in ("entities", "products")
    ),
)
"""The statements, in the order in which they run after the tables exist."""
