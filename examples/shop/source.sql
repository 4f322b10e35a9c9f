-- The tables of the shop.
CREATE TABLE customer (
  id serial PRIMARY KEY,
  name text NOT NULL,
  email text NOT NULL,
  balance numeric(12,2) NOT NULL DEFAULT 0,
  profile text NOT NULL
);
CREATE TABLE article (
  code text PRIMARY KEY,
  title text NOT NULL,
  price numeric(12,2) NOT NULL,
  manual text NOT NULL
);
CREATE TABLE purchase (
  id bigserial PRIMARY KEY,
  customer_id int REFERENCES customer ON DELETE SET NULL,
  status text NOT NULL DEFAULT 'placed',
  placed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE line (
  purchase_id bigint REFERENCES purchase ON DELETE CASCADE,
  number int,
  article_code text NOT NULL REFERENCES article ON UPDATE CASCADE,
  quantity int NOT NULL,
  PRIMARY KEY (purchase_id, number)
);
CREATE TABLE ticket (
  id serial PRIMARY KEY,
  email text NOT NULL,
  subject text NOT NULL,
  solved boolean NOT NULL DEFAULT false
);
-- The application adds a row when it ends: all changes before this row are then in the log.
CREATE TABLE closing (
  id serial PRIMARY KEY
);
-- Large texts are kept outside of the row (TOAST). PostgreSQL does not log them with an update that leaves them unchanged.
ALTER TABLE customer ALTER profile SET STORAGE EXTERNAL;
ALTER TABLE article ALTER manual SET STORAGE EXTERNAL;
-- An article may take another primary key. Then its new row needs its manual too, and FULL logs the manual.
ALTER TABLE article REPLICA IDENTITY FULL;
