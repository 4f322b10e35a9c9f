"""The rules of the first schema, as SQL: history, versions, values that never change, columns that entities declare, no product
over a join that nothing serves, no other content under a product's version, and the numbers that fence earlier runs.

They hold for every edit, psql's included. A broken rule is an integrity error (SQLSTATE 23000). The database also refuses every
edit of a transaction that did not announce it. The repository announces its edits (`rows.begin_edit`). An operator
announces an edit by `SELECT edit_by_hand('the reason')`, and the other rules still hold.
"""

# Edits: an edit is announced, goes into the history, and raises the version.

EDITED = (
    *("entities", "assignments", "joins", "access_paths", "products", "product_joins"),
    *("waiting_products", "waiting_joins", "work", "slots"),
)
"""The tables whose edits go into the history and raise the version."""

DERIVED = ("layouts", "product_versions", "ledger_numbers")
"""The tables that only triggers of edits write."""

ADD_ONLY = {"history": "its rows never change", "epochs": "a boundary never changes"}
"""The tables whose rows never change or go, each with the reason that Postgres gives."""

SIGNED = ("epochs", "replay_requests")
"""The tables whose new rows are edits where a person gives a reason for the history: a boundary, a repair from the source."""

RECORD_EDIT = """
CREATE FUNCTION record_edit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  before json := CASE WHEN TG_OP <> 'INSERT' THEN row_to_json(OLD) END;
  after json := CASE WHEN TG_OP <> 'DELETE' THEN row_to_json(NEW) END;
BEGIN
  IF before::text IS DISTINCT FROM after::text AND EXISTS (SELECT FROM meta) THEN
    INSERT INTO history (version, at, who, why, entry, operation, old, new)
    VALUES (edit_version(), clock_timestamp(),
      coalesce(nullif(current_setting('statestore.who', true), ''), current_user),
      nullif(current_setting('statestore.why', true), ''),
      TG_TABLE_NAME, lower(TG_OP), before, after);
  END IF;
  RETURN NULL;
END $$
"""
"""The slots of a new registry come before its settings, in no edit."""

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

EDIT_RULES = (  # a job's own boundaries have no reason, and are no edit
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
    *(
        f"CREATE TRIGGER kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} "
        "WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse('the triggers of edits keep it')"
        for table in DERIVED
    ),
    *(
        f"CREATE TRIGGER recorded AFTER INSERT ON {table} FOR EACH ROW "
        "WHEN (coalesce(current_setting('statestore.why', true), '') <> '') EXECUTE FUNCTION record_edit()"
        for table in SIGNED
    ),
    "CREATE TRIGGER recorded BEFORE INSERT ON history "
    "WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse('the triggers of edits write it')",
    "CREATE TRIGGER stays BEFORE DELETE ON work EXECUTE FUNCTION refuse('the registry needs it')",
)


# Lasting values: keys and assignments that stored rows depend on never change, and slots only come.

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

DROPPED_COLUMNS = """
CREATE FUNCTION remember_dropped() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.dropped := '{}';
  IF TG_OP = 'UPDATE' AND has_run(NEW.name) THEN
    NEW.dropped := (OLD.dropped::jsonb || OLD.columns::jsonb) - ARRAY(SELECT jsonb_object_keys(NEW.columns::jsonb));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER remembers BEFORE INSERT OR UPDATE ON entities FOR EACH ROW EXECUTE FUNCTION remember_dropped()
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
  IF NEW.version = OLD.version
    AND (NEW.identity, NEW.job, NEW.table_name) IS DISTINCT FROM (OLD.identity, OLD.job, OLD.table_name)
  THEN
    RETURN NEW;  -- the binding to a job and a table is no part of a version
  END IF;
  IF NEW.version <> OLD.version + 1 OR NEW.edited_in IS NOT DISTINCT FROM OLD.edited_in THEN
    RAISE EXCEPTION 'meta: the version only rises, by one for each edit'
      USING ERRCODE = '23000';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON meta FOR EACH ROW EXECUTE FUNCTION meta_stays();
CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON meta EXECUTE FUNCTION refuse('the registry needs it')
"""

SLOTS_STAY = """
CREATE FUNCTION next_slot() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  next int := (SELECT coalesce(max(slot), 0) + 1 FROM slots);
BEGIN
  IF NEW.slot <> next THEN
    RAISE EXCEPTION 'slots: the next one is %, not %', next, NEW.slot USING ERRCODE = '23000';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER follows BEFORE INSERT ON slots FOR EACH ROW EXECUTE FUNCTION next_slot();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON slots
  EXECUTE FUNCTION refuse('the table keeps its indexes, so their number only rises')
"""

LASTING_VALUES = (
    ENTITY_STAYS,
    HAS_RUN,
    DROPPED_COLUMNS,
    ENTITY_REMAINS,
    ASSIGNMENT_STAYS,
    ASSIGNMENT_OF_STORED_ROWS,
    META_STAYS,
    SLOTS_STAY,
)


# The life of assignments: steps wait for the jobs, and layouts rise.

LAGGING_JOB = """
CREATE FUNCTION lagging_job(version bigint) RETURNS text LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
  SELECT job FROM leases
  WHERE owner IS NOT NULL AND renewed_at + make_interval(secs => expires_after) >= clock_timestamp()
    AND coalesce(applied_version, -1) < $1
  LIMIT 1
$$;
COMMENT ON FUNCTION lagging_job IS 'a living job that has not applied this registry version'
"""

STATE_FOLLOWS = """
CREATE FUNCTION state_follows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  lagging text;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.state = OLD.state THEN
    NEW.changed_version := OLD.changed_version;
    RETURN NEW;
  END IF;
  IF TG_OP = 'UPDATE' OR (TG_OP = 'DELETE' AND OLD.state <> 'planned') THEN
    lagging := lagging_job(OLD.changed_version);
    IF lagging IS NOT NULL THEN
      RAISE EXCEPTION 'entity % slot %: job % has not applied registry version %, in which its state became %',
        OLD.entity, OLD.slot, lagging, OLD.changed_version, OLD.state
        USING ERRCODE = '23000', HINT = 'the job applies it before its next batch: wait, or stop the job';
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.state = 'serving' AND has_run(NEW.entity) AND NOT EXISTS (
    SELECT FROM leases WHERE owner IS NOT NULL AND job || '#' || generation = current_setting('statestore.run', true)
  ) THEN
    RAISE EXCEPTION 'entity % slot %: only the job knows when every stored row has the slot', NEW.entity, NEW.slot
      USING ERRCODE = '23000', HINT = '`statestore run` or `statestore backfill` fills the slot, and then takes this step';
  END IF;
  NEW.changed_version := edit_version();
  RETURN NEW;
END $$;
CREATE TRIGGER state_follows BEFORE INSERT OR UPDATE OR DELETE ON assignments
  FOR EACH ROW EXECUTE FUNCTION state_follows()
"""
"""A job uses at most two neighbouring states. No job writes a planned assignment, so it may go at once. The setting names the run
whose transaction this is (`registry.repository.leases.check_applied`)."""

LAYOUT_RISES = """
CREATE FUNCTION raise_layout(entity text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO layouts VALUES ($1, edit_version())
  ON CONFLICT ON CONSTRAINT layouts_pk DO UPDATE SET version = excluded.version
$$;
CREATE FUNCTION slot_becomes_written() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NEW.state <> 'planned' AND (TG_OP = 'INSERT' OR OLD.state = 'planned') THEN
    PERFORM raise_layout(NEW.entity);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER layout_rises AFTER INSERT OR UPDATE ON assignments
  FOR EACH ROW EXECUTE FUNCTION slot_becomes_written();
CREATE FUNCTION edges_become_written() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' OR (NEW.entity, NEW.edges) IS DISTINCT FROM (OLD.entity, OLD.edges) THEN
    PERFORM raise_layout(new_path.entity) FROM access_paths AS new_path
    WHERE new_path.join_id = NEW.join_id AND new_path.edges IS NOT NULL AND NOT EXISTS (
      SELECT FROM access_paths AS other
      WHERE other.join_id <> NEW.join_id AND (other.entity, other.edges) = (new_path.entity, new_path.edges)
    );
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER layout_rises AFTER INSERT OR UPDATE ON access_paths
  FOR EACH ROW EXECUTE FUNCTION edges_become_written()
"""
"""Jobs use a join once it has both paths, so both are looked at. Edges that other joins use already are no new ones."""

LIFE_RULES = (LAGGING_JOB, STATE_FOLLOWS, LAYOUT_RISES)


# Products: a version has one content for ever and never repeats, joins never change, and a ledger number belongs to one product
# for ever. The job publishes a change of a product only as another version. So the database refuses another content under the
# same version.

SAME_CONTENT = """
CREATE FUNCTION same_content(one json, other json) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT one::jsonb = other::jsonb AND json_strip_nulls(one)::text = json_strip_nulls(other)::text
$$;
COMMENT ON FUNCTION same_content IS 'whether two definitions differ in white space at most; the order of members counts'
"""

PRODUCT_STAYS = """
CREATE FUNCTION product_stays() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  highest int := (SELECT version FROM product_versions WHERE product = NEW.name);
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.name <> OLD.name THEN
    RAISE EXCEPTION 'product %: its name never changes', OLD.name
      USING ERRCODE = '23000', HINT = 'another name makes another product';
  END IF;
  IF TG_TABLE_NAME = 'products' AND TG_OP = 'UPDATE' AND NEW.root <> OLD.root AND has_run(OLD.root) THEN
    RAISE EXCEPTION 'product %: its root never changes once a job has run with %', OLD.name, OLD.root
      USING ERRCODE = '23000', HINT = 'another root makes another product: give it another name';
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.version = OLD.version THEN
    IF to_jsonb(NEW) - 'paused' <> to_jsonb(OLD) - 'paused' OR NOT same_content(OLD.definition, NEW.definition) THEN
      RAISE EXCEPTION 'product %: version % keeps its topic, its root and its definition, and stays retracted or not',
        OLD.name, OLD.version USING ERRCODE = '23000',
        HINT = format('the job publishes a change only as another version: set version = %s too', highest + 1);
    END IF;
    RETURN NULL;
  END IF;
  IF NEW.version <= highest AND NOT (
    TG_TABLE_NAME = 'products'
    AND EXISTS (SELECT FROM waiting_products WHERE (name, version) = (NEW.name, NEW.version))
  ) THEN
    RAISE EXCEPTION 'product %: version % is not new, the highest was %', NEW.name, NEW.version, highest
      USING ERRCODE = '23000', HINT = 'a version never repeats, also after a removal';
  END IF;
  INSERT INTO product_versions VALUES (NEW.name, NEW.version)
  ON CONFLICT (product) DO UPDATE SET version = greatest(product_versions.version, excluded.version);
  RETURN NULL;
END $$
"""
"""A waiting product goes live with the version that it waits with."""

USED_JOINS_STAY = """
CREATE FUNCTION used_joins_stay() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  changed text;
BEGIN
  IF to_jsonb(OLD) IS NOT DISTINCT FROM to_jsonb(NEW) THEN
    RETURN NULL;
  END IF;
  SELECT one.name INTO changed
  FROM (SELECT 'products' AS entry, name FROM products UNION ALL SELECT 'waiting_products', name FROM waiting_products) AS one
  WHERE one.entry = TG_ARGV[0] AND one.name IN (to_jsonb(OLD) ->> 'product', to_jsonb(NEW) ->> 'product') AND NOT EXISTS (
    SELECT FROM history
    WHERE history.version = (SELECT version FROM meta) AND history.entry = one.entry AND history.new ->> 'name' = one.name
      AND (history.new ->> 'version') IS DISTINCT FROM (history.old ->> 'version')
  ) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'product %: its joins change only with its version', changed
      USING ERRCODE = '23000', HINT = '`statestore apply` changes both by the definition';
  END IF;
  RETURN NULL;
END $$
"""
"""At commit the history has every change of this transaction, and the registry's version is that of this transaction."""

LEDGER_NUMBER = """
CREATE FUNCTION give_ledger_number() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO ledger_numbers
  SELECT NEW.root, NEW.name, coalesce(max(number) + 1, 0) FROM ledger_numbers WHERE root = NEW.root
  ON CONFLICT (root, product) DO NOTHING;
  RETURN NULL;
END $$
"""
"""Edits come one after the other, so two products never take one number. A product that comes again has its former number: the
ledger still has its sequences."""

PRODUCT_RULES = (
    SAME_CONTENT,
    PRODUCT_STAYS,
    USED_JOINS_STAY,
    LEDGER_NUMBER,
    *(
        f"CREATE TRIGGER has_number AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION give_ledger_number()"
        for table in ("products", "waiting_products")
    ),
    *(
        f"CREATE TRIGGER stays AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION product_stays()"
        for table in ("products", "waiting_products")
    ),
    *(
        f"CREATE CONSTRAINT TRIGGER joins_stay AFTER INSERT OR UPDATE OR DELETE ON {table} DEFERRABLE INITIALLY DEFERRED "
        f"FOR EACH ROW EXECUTE FUNCTION used_joins_stay('{of}')"
        for table, of in {"product_joins": "products", "waiting_joins": "waiting_products"}.items()
    ),
    "CREATE TRIGGER stays BEFORE UPDATE ON joins FOR EACH ROW "
    "EXECUTE FUNCTION refuse('a join never changes: another join is another row')",
    "CREATE TRIGGER stays BEFORE UPDATE ON access_paths FOR EACH ROW "
    "WHEN ((OLD.join_id, OLD.direction, OLD.entity, OLD.edges, OLD.slot IS NULL) "
    "IS DISTINCT FROM (NEW.join_id, NEW.direction, NEW.entity, NEW.edges, NEW.slot IS NULL)) "
    "EXECUTE FUNCTION refuse('a path of a join changes only its slot')",
)


# Joins: something serves each join of a product, and entities declare the columns that others use.

UNSERVED = """
CREATE VIEW unserved AS
SELECT product, join_id, direction, side.entity, side.columns, paths.slot, held.state
FROM (
  SELECT product, join_id, false AS waits FROM product_joins
  UNION ALL SELECT product, join_id, true FROM waiting_joins
) AS used
JOIN joins ON joins.id = join_id
CROSS JOIN LATERAL (VALUES ('down', child, child_columns), ('up', parent, parent_columns))
  AS side (direction, entity, columns)
JOIN entities ON entities.name = side.entity
LEFT JOIN access_paths AS paths USING (join_id, direction, entity)
LEFT JOIN assignments AS held ON held.entity = side.entity AND held.slot = paths.slot
WHERE paths.join_id IS NULL
  OR (paths.slot IS NULL AND paths.edges IS NULL AND NOT entities.key <@ side.columns)
  OR (paths.edges IS NOT NULL AND NOT (paths.edges <@ side.columns AND side.columns <@ paths.edges))
  OR (paths.slot IS NOT NULL AND NOT (
    held.columns <@ side.columns AND (held.state = 'serving' OR (used.waits AND held.state <> 'retiring'))
  ));
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
      USING ERRCODE = '23000', HINT = 'each join of a product needs a key read, edges or a serving slot, down and up';
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
  IF 1 < (SELECT count(*) FROM (
    SELECT 'entity', name FROM entities WHERE topic = NEW.topic
    UNION SELECT 'product', name FROM products WHERE topic = NEW.topic
    UNION SELECT 'product', name FROM waiting_products WHERE topic = NEW.topic
  ) AS owners) THEN
    RAISE EXCEPTION 'topic %: two entries have it', NEW.topic
      USING ERRCODE = '23000', HINT = 'no two entities or products have one topic, also while a product waits';
  END IF;
  RETURN NULL;
END $$
"""

CHECKED = {
    "product_joins": "INSERT OR UPDATE",
    "waiting_joins": "INSERT OR UPDATE",
    "access_paths": "INSERT OR UPDATE OR DELETE",
    "assignments": "UPDATE",
    "joins": "UPDATE",
}
"""The edits after which Postgres checks, at commit, that every join of a product is served. Keys of entities never change."""

JOIN_RULES = (
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
        for table in ("entities", "products", "waiting_products")
    ),
)


# Runs: the numbers that fence an earlier run, or its tasks, never fall, and stay with their job.

LEASE_STAYS = """
CREATE FUNCTION lease_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.job <> OLD.job OR NEW.generation < OLD.generation OR NEW.lanes < OLD.lanes
    OR coalesce(NEW.applied_version, -1) < coalesce(OLD.applied_version, -1)
  THEN
    RAISE EXCEPTION 'job %: the generation, lanes and applied version of its lease never fall, and its name never changes',
      OLD.job USING ERRCODE = '23000', HINT = 'they keep earlier runs from the table and the topics';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION lease_stays()
"""

ATTEMPT_STAYS = """
CREATE FUNCTION attempt_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.job, NEW.lane) <> (OLD.job, OLD.lane)
    OR (NEW.generation, NEW.round, NEW.attempt) < (OLD.generation, OLD.round, OLD.attempt)
  THEN
    RAISE EXCEPTION 'job % lane %: the attempts of its tasks only rise', OLD.job, OLD.lane
      USING ERRCODE = '23000', HINT = 'they keep a lost task from the topics';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON attempts FOR EACH ROW EXECUTE FUNCTION attempt_stays()
"""

RUN_RULES = (
    LEASE_STAYS,
    ATTEMPT_STAYS,
    *(
        f"CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON {table} EXECUTE FUNCTION refuse('it keeps earlier runs away')"
        for table in ("leases", "attempts")
    ),
)


FIRST_RULES = (*EDIT_RULES, *LASTING_VALUES, *LIFE_RULES, *PRODUCT_RULES, *JOIN_RULES, *RUN_RULES)
"""The statements, in the order in which they run after the tables exist."""
