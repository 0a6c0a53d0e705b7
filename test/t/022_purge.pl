# P7: the log's tables take turns; what every link has confirmed goes away, what one has not stays, and nobody waits.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(track => ['t'], conf_a => 'onerepl.log_retention = 0', schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');

sub active { return $pair->a('SELECT active FROM onerepl.log_state'); }
sub size { return $pair->a("SELECT pg_relation_size('onerepl.change_$_[0]')"); }

# Rotation is due when the tables have stood long enough; here at once.
sub rotate
{
	my ($name) = @_;
	my $old = active();
	$pair->a("UPDATE onerepl.log_state SET rotated_at = now() - interval '1 day'");
	$pair->poll_a("SELECT active <> $old FROM onerepl.log_state", $name);
	return $old;
}

sub emptied
{
	my ($table, $name) = @_;
	$pair->poll_a("SELECT pg_relation_size('onerepl.change_$table') = 0", $name);
	return;
}

# ---------------------------------------------------------------- confirmed: gone
$pair->a("INSERT INTO t SELECT n, 'first' FROM generate_series(1, 5000) n");
$pair->wait_identical('t');
emptied(rotate('the next table is written to'), 'what is confirmed is purged');

# ---------------------------------------------------------------- a transaction that stays open
my $session = $pair->node_a->background_psql('postgres');
$session->query_safe("BEGIN; INSERT INTO t SELECT n, 'open' FROM generate_series(10001, 15000) n");
$pair->a("INSERT INTO t VALUES (20001, 'beside')");
my $with_open = rotate('an open transaction does not hold back the rotation');
$pair->a("INSERT INTO t VALUES (20002, 'beside')");
is($pair->b('SELECT 1'), '1', 'B is there');
$pair->poll_b('SELECT count(*) = 2 FROM t WHERE id > 20000', 'others go on');
cmp_ok(size($with_open), '>', 0, 'its table stays');
$session->query_safe('COMMIT');
$session->quit;
$pair->wait_identical('t');
emptied($with_open, 'its table goes when it is confirmed');

# ---------------------------------------------------------------- B away: nothing is lost
$pair->node_b->stop('immediate');
$pair->a("INSERT INTO t SELECT n, 'away' FROM generate_series(30001, 31000) n");
my $unconfirmed = rotate('rotation with B away');
$pair->a("INSERT INTO t SELECT n, 'away' FROM generate_series(31001, 32000) n");
sleep 12;
cmp_ok(size($unconfirmed), '>', 0, 'what is not confirmed stays');
$pair->node_b->start;
$pair->wait_identical('t');
emptied($unconfirmed, 'and goes when it is');
cmp_ok($pair->a('SELECT count(*) FROM onerepl.batch'), '<', 20, 'batches are purged too');
cmp_ok($pair->a('SELECT count(*) FROM onerepl.sent_progress'), '<', 20, 'so are positions');
is($pair->a("SELECT count(*) FROM onerepl.journal WHERE level::text = 'critical'"), '0', 'no critical entry');

$pair->finish;
done_testing();
