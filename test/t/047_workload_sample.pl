# A sample database in the shape of those that shops for films are shown with: customers, films, inventories, rentals and payments by
# month, with types, triggers and views of its own. It is copied by a refresh while clerks work; the central has other partitions.
use strict;
use warnings;
use IPC::Run;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $schema = <<'SQL';
CREATE SCHEMA rental; ALTER DATABASE postgres SET search_path = rental, public; SET search_path = rental;
CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17'); CREATE DOMAIN year AS int CHECK (VALUE BETWEEN 1901 AND 2155);
CREATE FUNCTION last_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_update := now(); RETURN NEW; END $$;
CREATE TABLE language (language_id serial PRIMARY KEY, name char(20) NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE actor (actor_id serial PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE category (category_id serial PRIMARY KEY, name text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE film (film_id serial PRIMARY KEY, title text NOT NULL, description text, release_year year,
    language_id int NOT NULL REFERENCES language, rental_duration smallint NOT NULL DEFAULT 3, rental_rate numeric(4, 2) NOT NULL DEFAULT 4.99,
    length smallint, rating mpaa_rating DEFAULT 'G', special_features text[], fulltext tsvector NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON film USING gist (fulltext); CREATE INDEX ON film (title);
CREATE TABLE film_actor (actor_id int REFERENCES actor, film_id int REFERENCES film, last_update timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (actor_id, film_id));
CREATE TABLE film_category (film_id int REFERENCES film, category_id int REFERENCES category, PRIMARY KEY (film_id, category_id));
CREATE TABLE country (country_id serial PRIMARY KEY, country text NOT NULL); CREATE TABLE city (city_id serial PRIMARY KEY, city text NOT NULL, country_id int NOT NULL REFERENCES country);
CREATE TABLE address (address_id serial PRIMARY KEY, address text NOT NULL, district text, city_id int NOT NULL REFERENCES city, phone text, place point);
CREATE TABLE store (store_id serial PRIMARY KEY, manager_staff_id int NOT NULL UNIQUE, address_id int NOT NULL REFERENCES address);
CREATE TABLE staff (staff_id serial PRIMARY KEY, name text NOT NULL, address_id int NOT NULL REFERENCES address, store_id int NOT NULL REFERENCES store,
    active bool NOT NULL DEFAULT true, picture bytea);
ALTER TABLE store ADD FOREIGN KEY (manager_staff_id) REFERENCES staff DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE customer (customer_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, store_id int NOT NULL REFERENCES store, first_name text NOT NULL, last_name text NOT NULL,
    full_name text GENERATED ALWAYS AS (last_name || ', ' || first_name) STORED, email text UNIQUE, address_id int NOT NULL REFERENCES address,
    create_date date NOT NULL DEFAULT current_date, preferences jsonb NOT NULL DEFAULT '{}', last_update timestamptz DEFAULT now());
CREATE TABLE inventory (inventory_id serial PRIMARY KEY, film_id int NOT NULL REFERENCES film ON UPDATE CASCADE, store_id int NOT NULL REFERENCES store);
CREATE TABLE rental (rental_id bigserial PRIMARY KEY, inventory_id int NOT NULL REFERENCES inventory, customer_id int NOT NULL REFERENCES customer ON DELETE CASCADE,
    period tstzrange NOT NULL, staff_id int NOT NULL REFERENCES staff);
CREATE INDEX ON rental USING gist (period); CREATE INDEX ON rental (inventory_id);
CREATE SEQUENCE payment_id; CREATE TABLE payment (payment_id bigint DEFAULT nextval('rental.payment_id'), customer_id int NOT NULL, rental_id bigint NOT NULL,
    amount numeric(5, 2) NOT NULL, payment_date timestamptz NOT NULL, PRIMARY KEY (payment_date, payment_id)) PARTITION BY RANGE (payment_date);
CREATE VIEW customer_list AS SELECT c.customer_id, c.full_name, a.address, ci.city FROM customer AS c JOIN address AS a USING (address_id) JOIN city AS ci USING (city_id);
CREATE TRIGGER last_updated BEFORE UPDATE ON film FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER last_updated BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER fulltext BEFORE INSERT OR UPDATE ON film FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
CREATE FUNCTION rent(of_film int, for_customer int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE item int; made bigint;
BEGIN
    SELECT inventory_id INTO item FROM rental.inventory AS i WHERE film_id = of_film
        AND NOT EXISTS (SELECT FROM rental.rental AS r WHERE r.inventory_id = i.inventory_id AND upper_inf(r.period)) LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF item IS NULL OR NOT EXISTS (SELECT FROM rental.customer WHERE customer_id = for_customer FOR KEY SHARE) THEN RETURN NULL; END IF;
    INSERT INTO rental.rental (inventory_id, customer_id, period, staff_id)
        VALUES (item, for_customer, tstzrange('2022-01-01'::timestamptz + random() * interval '200 days', NULL), 1 + of_film % 2) RETURNING rental_id INTO made;
    INSERT INTO rental.payment (customer_id, rental_id, amount, payment_date) SELECT r.customer_id, r.rental_id, f.rental_rate, lower(r.period)
        FROM rental.rental AS r, rental.film AS f WHERE r.rental_id = made AND f.film_id = of_film;
    RETURN made;
END $$;
SQL
my $months = 'SET search_path = rental; ' . join '',
  map { sprintf "CREATE TABLE payment_2022_%02d PARTITION OF payment FOR VALUES FROM ('2022-%02d-01') TO ('2022-%02d-01');\n", $_, $_, $_ + 1 } 1 .. 7;
$months .= "CREATE TABLE payment_rest PARTITION OF payment DEFAULT PARTITION BY HASH (payment_id); CREATE TABLE payment_rest_0 PARTITION OF payment_rest FOR VALUES WITH (MODULUS 1, REMAINDER 0)";
my $halves = "SET search_path = rental; CREATE TABLE payment_first PARTITION OF payment FOR VALUES FROM ('2022-01-01') TO ('2022-06-15'); CREATE TABLE payment_second PARTITION OF payment DEFAULT";

my $data = <<'SQL';
SET search_path = rental;
INSERT INTO language (name) VALUES ('English'), ('Français'), ('日本語'); INSERT INTO category (name) SELECT 'category ' || g FROM generate_series(1, 16) AS g;
INSERT INTO actor (first_name, last_name) SELECT initcap(left(md5(g::text), 6)), upper(right(md5(g::text), 8)) FROM generate_series(1, 200) AS g;
INSERT INTO film (title, description, release_year, language_id, rental_rate, length, rating, special_features)
    SELECT initcap(left(md5(g::text), 5) || ' ' || right(md5(g::text), 7)), repeat('a story of a ' || left(md5(g::text), 8) || ' that must find the sea. ', 1 + g % 50), 1950 + g % 70,
        1 + g % 3, (1 + g % 5)::numeric - 0.01, 60 + g % 120, (enum_range(NULL::mpaa_rating))[1 + g % 5], CASE WHEN g % 4 > 0 THEN ARRAY['Trailers', 'Deleted "Scenes"', NULL] END
    FROM generate_series(1, 1000) AS g;
INSERT INTO film_actor (actor_id, film_id) SELECT DISTINCT 1 + (f * a * 7) % 200, f FROM generate_series(1, 1000) AS f, generate_series(1, 5) AS a;
INSERT INTO film_category SELECT f, 1 + f % 16 FROM generate_series(1, 1000) AS f; INSERT INTO country (country) SELECT 'Länd ' || g FROM generate_series(1, 109) AS g;
INSERT INTO city (city, country_id) SELECT 'City ' || g, 1 + g % 109 FROM generate_series(1, 600) AS g;
INSERT INTO address (address, district, city_id, phone, place) SELECT g || ' Street', NULLIF('d' || g % 5, 'd0'), 1 + g % 600, (g * 7919)::text, point(g, -g / 3.0) FROM generate_series(1, 603) AS g;
BEGIN; INSERT INTO store VALUES (1, 1, 1), (2, 2, 2); INSERT INTO staff (name, address_id, store_id, picture) VALUES ('Mike', 3, 1, decode(repeat('89504e47', 20000), 'hex')), ('Jon', 4, 2, NULL); COMMIT;
INSERT INTO customer (store_id, first_name, last_name, email, address_id) SELECT 1 + g % 2, 'First' || g, 'LAST' || g, g || '@example.org', 5 + g % 590 FROM generate_series(1, 599) AS g;
INSERT INTO inventory (film_id, store_id) SELECT 1 + g % 1000, 1 + g % 2 FROM generate_series(1, 4500) AS g;
SELECT count(rent(g % 1000 + 1, g % 599 + 1)) FROM generate_series(1, 3000) AS g;
SQL
my $work = <<'SQL';
\set film random(1, 1000)
\set customer random(1, 650)
\set what random(1, 100)
SELECT rental.rent(:film, :customer);
BEGIN;
UPDATE rental.rental SET period = tstzrange(lower(period), lower(period) + interval '3 days') WHERE rental_id IN
    (SELECT rental_id FROM rental.rental WHERE customer_id = :customer AND upper_inf(period) ORDER BY rental_id FOR UPDATE SKIP LOCKED LIMIT 1);
UPDATE rental.payment SET amount = amount + 1, payment_date = payment_date + interval '17 days' WHERE customer_id = :customer AND payment_id % 20 = :what % 20;
COMMIT;
\if :what < 20
UPDATE rental.film SET description = description || '!', rental_rate = rental_rate % 9 + 0.5, special_features[2] = NULL WHERE film_id = :film;
\elif :what < 40
INSERT INTO rental.customer (store_id, first_name, last_name, email, address_id) VALUES (1, 'New', 'CUSTOMER', :customer + 1000 || '@example.org', 10)
    ON CONFLICT (email) DO UPDATE SET preferences = customer.preferences || jsonb_build_object('n', :film), last_name = customer.last_name || '.';
\elif :what < 45
DELETE FROM rental.customer WHERE customer_id = :customer;
\elif :what < 50
INSERT INTO rental.film_actor (actor_id, film_id) VALUES (1 + :film % 200, :film) ON CONFLICT (actor_id, film_id) DO UPDATE SET last_update = now();
\elif :what < 52
UPDATE rental.staff SET active = NOT active WHERE staff_id = 1;
\endif
SQL

my $pair = OneReplTest->new(schema => $schema);
$pair->a($months);
$pair->a($data);
$pair->b($halves);
$pair->a(q{SELECT onerepl_add_schema('rental')});
my @tables = split /\n/, $pair->a('SELECT relation FROM onerepl.tracked ORDER BY 1');
is(scalar @tables, 15, '15 tables');

my $file = PostgreSQL::Test::Utils::tempdir() . '/work.sql';
append_to_file($file, $work);
$pair->a("SELECT onerepl_refresh('hq', chunk_rows => 700)");
my $clerks = OneReplTest::start_pgbench($pair->node_a, '-c', 3, '-t', 300, '-f', $file);
IPC::Run::finish($clerks);
$pair->a(<<'SQL');
ALTER TABLE rental.payment DETACH PARTITION rental.payment_2022_01;
UPDATE rental.payment_2022_01 SET amount = 0;
BEGIN; DROP TABLE rental.payment_2022_02; DELETE FROM rental.payment WHERE amount > 8; COMMIT;
ALTER TABLE rental.payment ATTACH PARTITION rental.payment_2022_01 FOR VALUES FROM ('2022-01-01') TO ('2022-02-01');
TRUNCATE rental.film_category; UPDATE rental.film SET film_id = film_id + 5000 WHERE film_id NOT IN (SELECT film_id FROM rental.film_actor);
SQL
$pair->poll_a("SELECT bool_and(state = 'done') FROM onerepl.refresh_progress", 'copied', deadline => 90);
is($pair->a("SELECT onerepl_wait('hq', '60s')"), 't', 'all is written');
is($pair->b("SELECT coalesce(string_agg(concat_ws(' ', relation, operation, key, message), E'\n'), '') FROM onerepl.failed"), '', 'nothing failed');
$pair->wait_identical(@tables, { name => 'all tables are identical' });
cmp_ok($pair->b('SELECT count(*) FROM rental.rental'), '>', 2500, 'with what was there and what came');
is($pair->b('SELECT count(*) FROM rental.payment WHERE amount = 0') > 0, 1, 'a partition that was detached and came back');
is($pair->b('SELECT md5(string_agg(full_name, \',\' ORDER BY customer_id)) FROM rental.customer_list'),
	$pair->a('SELECT md5(string_agg(full_name, \',\' ORDER BY customer_id)) FROM rental.customer_list'), 'a view over it');
$pair->finish;
done_testing();
