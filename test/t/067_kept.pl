# What the log refers to is always there: descriptions that sessions still write under (P20).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(track => [ 'pooled', 'interrupted', 'filler', 'emptied' ], conf_a => 'onerepl.log_retention = 0', schema => <<'SQL');
CREATE TABLE pooled (id int PRIMARY KEY, v int NOT NULL);
CREATE TABLE interrupted (id int PRIMARY KEY, v text);
CREATE TABLE filler (id int PRIMARY KEY, v text);
CREATE TABLE emptied (id int);
SQL

# --- two sessions describe a table at the same time; one of the two descriptions is replaced by the other, and its session goes on
$pair->a('CREATE UNIQUE INDEX ON pooled (v)');
my @sessions = map { $pair->node_a->background_psql('postgres', timeout => 600) } 0 .. 1;
$sessions[$_]->query_safe("BEGIN; INSERT INTO pooled VALUES ($_, $_)") for 0 .. 1;
$_->query_safe('COMMIT') for @sessions;
my ($older, $newer) = split /,/, $pair->a("SELECT string_agg(id::text, ',' ORDER BY id) FROM (SELECT id FROM onerepl.description WHERE relation = 'pooled'::regclass ORDER BY id DESC LIMIT 2) AS d");
is($pair->a("SELECT count(DISTINCT layout) FROM onerepl.description WHERE id IN ($older, $newer)"), '1', 'two descriptions say the same');
my $open = $pair->node_a->background_psql('postgres', timeout => 600);
$open->query_safe('BEGIN; LOCK TABLE pooled IN ROW EXCLUSIVE MODE');

# The log must go on, so that nothing in it needs what goes.
my $id = 100;
sub goes
{
	my ($condition, $name) = @_;
	my $good = OneReplTest::wait_for(
		sub {
			$id++;
			$pair->a("INSERT INTO filler VALUES ($id, 'x')");
			sleep 1;
			return $pair->a("SELECT count(*) FROM onerepl.description WHERE relation = 'pooled'::regclass AND $condition") eq '0';
		}, 120);
	return ok($good, $name);
}

# Another one of that time, of a table that nobody writes, tells that the purge has looked.
$pair->a('CREATE TABLE unused (id int PRIMARY KEY)');
$pair->track('unused');
$pair->a('ALTER TABLE unused ADD v int');
my $unused = "SELECT count(*) FROM onerepl.description WHERE relation = 'unused'::regclass";
is($pair->a($unused), '2', 'and the unused table has one that is replaced');
ok(OneReplTest::wait_for(sub { $id++; $pair->a("INSERT INTO filler VALUES ($id, 'x')"); sleep 1; return $pair->a($unused) eq '1' }, 120), 'which goes');
is($pair->a("SELECT count(*) FROM onerepl.description WHERE id = $older"), '1', 'but not one that a transaction may still write under');
$open->query_safe('INSERT INTO pooled VALUES (11, 11); COMMIT');
goes("id = $older", 'until that has ended');
# The sender reads descriptions anew after a large row.
$pair->a("INSERT INTO filler SELECT 0, string_agg(md5(n::text), '') FROM generate_series(1, 40000) AS n");
$sessions[$_]->query_safe("INSERT INTO pooled VALUES (2$_, 2$_)") for 0 .. 1;
$_->quit for @sessions, $open;
$pair->wait_identical('pooled');

# --- an error while a description is recorded: the full pack before it cannot be flushed
my $session = $pair->node_a->background_psql('postgres', timeout => 600, on_error_stop => 0);
my $holder = $pair->node_a->background_psql('postgres', timeout => 600);
$session->query_safe("SET lock_timeout = '20ms'");
$pair->a("ALTER TABLE interrupted ADD CHECK (v <> ''); CREATE UNIQUE INDEX ON interrupted (v)");
$holder->query_safe('BEGIN; LOCK TABLE onerepl.change_0, onerepl.change_1, onerepl.change_2, onerepl.change_3 IN ACCESS EXCLUSIVE MODE');
for my $count (0 .. 40)
{
	# Each attempt leaves a little less room in the pack for the description's record.
	my $truncates = 'TRUNCATE emptied;' x $count;
	$session->query(<<"SQL");
BEGIN;
INSERT INTO filler SELECT 1000 + n, repeat('x', 1000) FROM generate_series(1, 7) AS n;
INSERT INTO filler VALUES (2000, repeat('x', 850));
$truncates
INSERT INTO interrupted VALUES (1, 'never');
ROLLBACK;
SQL
}
$holder->query_safe('ROLLBACK');
$holder->quit;
$session->query("SET lock_timeout = 0; INSERT INTO interrupted VALUES (2, 'written')");    # its errors may still come
$session->quit;
$pair->wait_identical('pooled', 'interrupted', 'filler');
$pair->wait_settled;
$pair->verify_equal('pooled', 'interrupted', 'filler');
is($pair->a("SELECT count(*) FROM onerepl.journal WHERE level = 'critical'"), '0', 'no critical entry');
$pair->finish;
done_testing();
