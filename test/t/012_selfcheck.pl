# The self-check finds what would make a table silently fall out of replication, tells it once, and says the cure.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => [qw(plain parted gone)],
	schema => <<'SQL');
CREATE TABLE plain (id int PRIMARY KEY, v text, n int);
CREATE TABLE gone (id int PRIMARY KEY);
CREATE TABLE parted (id int, region int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
SQL
$pair->a("INSERT INTO plain VALUES (1, 'x', 1); INSERT INTO parted VALUES (1, 1); INSERT INTO gone VALUES (1)");
$pair->wait_identical(qw(plain parted gone));

sub check { return $pair->a('SELECT onerepl.self_check()'); }
# What was broken must be found, told once, shown in the status, and be over when the cure is taken.
sub found_ok
{
	my ($name, $kind, $break, $cure) = @_;
	is(check(), '0', "$name: nothing is wrong before");
	my $before = OneReplTest::journal_count($pair->node_a, level => 'critical');
	$pair->a($break);
	cmp_ok(check(), '>=', 1, "$name: found");
	check();
	is(OneReplTest::journal_count($pair->node_a, level => 'critical') - $before, 1, "$name: told once, as critical");
	like($pair->a("SELECT string_agg(hint, ' ') FROM onerepl.journal WHERE level = 'critical'"), qr/\S/, "$name: with the cure");
	is($pair->a('SELECT problems > 0 AND what_to_do ~ \'problem\' FROM onerepl_status()'), 't', "$name: the status shows it");
	$pair->a($cure);
	is(check(), '0', "$name: over after the cure");
	is($pair->a('SELECT problems FROM onerepl_status()'), '0', "$name: the status too");
	return;
}

found_ok('a disabled trigger', '', 'ALTER TABLE plain DISABLE TRIGGER "!onerepl_capture"', "SELECT onerepl_add_table('plain')");
found_ok('a trigger that is not ALWAYS', '', 'ALTER TABLE plain ENABLE TRIGGER "!onerepl_capture"', "SELECT onerepl_add_table('plain')");
found_ok('a dropped trigger', '', 'DROP TRIGGER "!onerepl_truncate" ON plain', "SELECT onerepl_add_table('plain')");
found_ok('a renamed trigger', '', 'ALTER TRIGGER "!onerepl_truncate" ON plain RENAME TO zzz', "DROP TRIGGER zzz ON plain; SELECT onerepl_add_table('plain')");
found_ok('a table dropped and made again', '', 'DROP TABLE gone; CREATE TABLE gone (id int PRIMARY KEY)', "SELECT onerepl_add_table('gone')");
found_ok('a rewrite that changes values', '', "ALTER TABLE plain ALTER n TYPE int8 USING n * 2", "SELECT onerepl_add_table('plain')");

# --- what is no problem
$pair->a('CREATE TABLE parted_2 (id int, region int NOT NULL, PRIMARY KEY (id, region)); INSERT INTO parted_2 VALUES (2, 2); ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2)');
$pair->a('CREATE TABLE parted_3 PARTITION OF parted FOR VALUES IN (3); ALTER TABLE plain ADD c int DEFAULT 5; ALTER TABLE plain RENAME TO renamed; VACUUM FULL renamed');
is(check(), '0', 'a partition with rows, a new partition, a new column, a renaming and a VACUUM FULL are no problem');
$pair->a('ALTER TABLE renamed RENAME TO plain');

# --- on B: the guard
$pair->b('ALTER TABLE plain DISABLE TRIGGER ALL');
cmp_ok($pair->b('SELECT onerepl.self_check()'), '>=', 1, 'B: a disabled guard is found');

# --- a worker looks by itself
$pair->a('ALTER TABLE plain DISABLE TRIGGER "!onerepl_capture"');
$pair->poll_a('SELECT problems > 0 FROM onerepl_status()', 'within a minute or so without being asked', deadline => 75);

$pair->finish;
done_testing();
