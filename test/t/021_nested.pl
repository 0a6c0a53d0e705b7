# P4 inside a transaction: statements nested in triggers, foreign-key actions, subtransactions that fail. B gets the changes in an
# order that it can write, and ends with what A ends with.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(track => [qw(item part shelf)], schema => <<'SQL');
CREATE TABLE item (id int PRIMARY KEY, v int UNIQUE, n int);
CREATE TABLE part (id int PRIMARY KEY, item int REFERENCES item ON DELETE CASCADE ON UPDATE CASCADE, u int UNIQUE);
CREATE TABLE shelf (id int PRIMARY KEY, v int UNIQUE, note text);

-- One random statement; a statement fails, or not, as it comes.
CREATE FUNCTION act() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r int := floor(random() * 9);
    k int := floor(random() * 12);
    l int := floor(random() * 12);
BEGIN
    CASE r
    WHEN 0 THEN INSERT INTO public.item SELECT g, g + l, l FROM generate_series(k, k + 1) g ON CONFLICT DO NOTHING;
    WHEN 1 THEN UPDATE public.item SET v = (v + l) % 12, n = n + 1
        WHERE id IN (k, k + 1) AND NOT EXISTS (SELECT FROM public.item z WHERE z.v = (item.v + l) % 12);
    WHEN 2 THEN DELETE FROM public.item WHERE id IN (k, l);
    WHEN 3 THEN UPDATE public.item SET id = l WHERE id = k AND NOT EXISTS (SELECT FROM public.item z WHERE z.id = l);
    WHEN 4 THEN INSERT INTO public.part SELECT k, id, l FROM public.item ORDER BY random() LIMIT 1 ON CONFLICT DO NOTHING;
    WHEN 5 THEN UPDATE public.part SET u = l WHERE id = k AND NOT EXISTS (SELECT FROM public.part z WHERE z.u = l);
    WHEN 6 THEN UPDATE public.item SET n = n + 1 WHERE id < k;
    WHEN 7 THEN INSERT INTO public.part
        SELECT g, (SELECT id FROM public.item ORDER BY random() LIMIT 1), g FROM generate_series(k, k + 2) g
        ON CONFLICT (id) DO UPDATE SET item = excluded.item;
    ELSE UPDATE public.item SET v = NULL WHERE id = k;
    END CASE;
END $$;

CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() < 4 AND random() < 0.3 THEN
        IF random() < 0.3 THEN
            BEGIN
                PERFORM public.act();
                IF random() < 0.3 THEN RAISE 'not this time'; END IF;
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
        ELSE
            PERFORM public.act();
        END IF;
    END IF;
    RETURN CASE WHEN TG_WHEN = 'BEFORE' AND TG_OP = 'DELETE' THEN OLD WHEN TG_WHEN = 'BEFORE' THEN NEW END;
END $$;
CREATE TRIGGER nest_before BEFORE INSERT OR UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION nest();
CREATE TRIGGER nest_after AFTER INSERT OR UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION nest();
CREATE TRIGGER nest_before BEFORE INSERT OR UPDATE OR DELETE ON part FOR EACH ROW EXECUTE FUNCTION nest();
CREATE TRIGGER nest_after AFTER INSERT OR UPDATE OR DELETE ON part FOR EACH ROW EXECUTE FUNCTION nest();

CREATE FUNCTION next_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() = 1 THEN UPDATE public.shelf SET note = note || '!' WHERE id = NEW.id + 1; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER next_row AFTER UPDATE ON shelf FOR EACH ROW EXECUTE FUNCTION next_row();
CREATE FUNCTION make_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DELETE FROM public.shelf WHERE v = NEW.v; RETURN NEW; END $$;
CREATE TRIGGER make_room BEFORE INSERT ON shelf FOR EACH ROW EXECUTE FUNCTION make_room();
SQL

# ---------------------------------------------------------------- the two patterns of lessons.md
$pair->a("INSERT INTO shelf SELECT g, g * 10, 'x' FROM generate_series(1, 6) g");
$pair->a("UPDATE shelf SET note = 'y' WHERE id <= 3");
$pair->wait_identical('shelf', { name => 'an AFTER trigger changes another row of its statement' });
$pair->a("INSERT INTO shelf VALUES (10, 10, 'new'), (20, 20, 'too'), (11, 10, 'again')");
$pair->wait_identical('shelf', { name => 'a BEFORE trigger deletes the holder of the key' });
$pair->a('BEGIN; UPDATE shelf SET v = 99 WHERE id = 11; UPDATE shelf SET v = 10 WHERE id = 20; UPDATE shelf SET v = 20 WHERE id = 11; COMMIT');
$pair->wait_identical('shelf', { name => 'two rows change their unique values' });

# ---------------------------------------------------------------- random ones
for my $round (1 .. 3)
{
	$pair->a(<<"SQL");
SELECT setseed(0.$round);
DO \$\$
BEGIN
    FOR i IN 1 .. 1500 LOOP
        BEGIN
            FOR j IN 1 .. 3 LOOP PERFORM public.act(); END LOOP;
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
        COMMIT;
    END LOOP;
END \$\$;
SQL
	$pair->wait_identical('item', 'part', { name => "nested statements, round $round", deadline => 60 });
}
cmp_ok($pair->a('SELECT count(*) FROM onerepl.change_0 WHERE last AND flags & 1 = 1'), '>', 100, 'many of them were logged out of order');
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');
cmp_ok($pair->a('SELECT count(*) FROM item'), '>', 0, 'rows are left to compare');

$pair->finish;
done_testing();
