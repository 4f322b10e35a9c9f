"""The rules of joins, as SQL: something serves each join of a product, and entities declare the columns that others use."""

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
