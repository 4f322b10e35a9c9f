"""The rules of edits, as SQL: an edit is announced, goes into the history, and raises the version."""

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
