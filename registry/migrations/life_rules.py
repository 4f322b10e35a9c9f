"""The rules of the life of assignments, as SQL: steps wait for the jobs, and layouts rise."""

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
whose transaction this is (`registry.repository.lease_store.check_applied`)."""

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
