"""The rules of products, as SQL: a version has one content for ever and never repeats, and joins never change.

The job publishes a change of a product only as another version. So the database refuses another content under the same version.
"""

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

PRODUCT_RULES = (
    SAME_CONTENT,
    PRODUCT_STAYS,
    USED_JOINS_STAY,
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
