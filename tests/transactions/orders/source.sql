CREATE TABLE orders (
  id bigint PRIMARY KEY, revision int NOT NULL, total bigint NOT NULL, line_count int NOT NULL, paid bigint NOT NULL, parcels int NOT NULL
);
CREATE TABLE line (id bigint PRIMARY KEY, order_id bigint NOT NULL, amount bigint NOT NULL);
CREATE TABLE payment (order_id bigint, number bigint, amount bigint NOT NULL, PRIMARY KEY (order_id, number));
CREATE TABLE shipment (id bigint PRIMARY KEY, order_id bigint NOT NULL);
CREATE TABLE receipt (order_id bigint PRIMARY KEY, revision int NOT NULL);
CREATE INDEX line_order ON line (order_id);
CREATE INDEX shipment_order ON shipment (order_id);
CREATE TABLE closing (id bigint PRIMARY KEY);
