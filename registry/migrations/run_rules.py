"""The rules of runs, as SQL: the numbers that fence an earlier run, or its tasks, never fall, and stay with their job."""

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
