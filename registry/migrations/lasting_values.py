"""The rules of lasting values, as SQL: keys and assignments that stored rows depend on never change, and slots only come."""

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
