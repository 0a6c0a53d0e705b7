# Random tables, random changes, random chunk sizes, random kills, from a seed: identical in the end, and verified.
# REFRESH_SEED=n repeats one; REFRESH_ROUNDS=n does more.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = $ENV{REFRESH_SEED} // int(rand 1_000_000);
my $rounds = $ENV{REFRESH_ROUNDS} // 4;
srand $seed;
note "REFRESH_SEED=$seed";

# Key columns: type and an expression of a random number n below the number of possible keys.
my @kinds = (
	[ 'int',        '%s' ],
	[ 'bigint',     '%s * 1000003' ],
	[ 'text',       "'k' || %s" ],
	[ 'varchar(20)', "chr(65 + %s %% 60) || %1\$s" ],
	[ 'char(12)',   "'c' || %s" ],
	[ 'numeric',    '%s / 10.0' ],
	[ 'uuid',       'md5((%s)::text)::uuid' ],
	[ 'date',       "'2000-01-01'::date + %s" ],
	[ 'timestamptz', "'2000-01-01'::timestamptz + %s * interval '1 second'" ],
	[ 'bytea',      "decode(md5((%s)::text), 'hex')" ],
	[ 'mood',       "(enum_range(NULL::mood))[1 + %s %% 3]" ],
	[ 'float8',     '(%s) / 3.0' ],
);
my $keys = 200;

sub one_of { return $_[ rand @_ ]; }

# A table: its statement, and SQL for a key from a number.
sub make_table
{
	my $name = shift;
	my @columns = map { one_of(@kinds) } 1 .. 1 + int rand 2;
	# A mood alone has three values.
	push @columns, $kinds[0] if @columns == 1 && $columns[0][0] eq 'mood';
	my @names = map { "k$_" } 1 .. @columns;
	my $has_key = rand() < 0.85;
	my %table = (name => $name, names => \@names, has_key => $has_key, columns => \@columns);
	$table{create} = "CREATE TABLE $name (" . join(', ', map { "$names[$_] $columns[$_][0] NOT NULL" } 0 .. $#names)
	  . ', u int' . (rand() < 0.5 && $has_key ? ' UNIQUE' : '') . ', v text, big text'
	  . ($has_key ? ', PRIMARY KEY (' . join(', ', @names) . ')' : '') . "); ALTER TABLE $name ALTER big SET STORAGE EXTERNAL";
	return \%table;
}

sub key_of
{
	my ($table, $n) = @_;
	return map { sprintf $_->[1], $n } @{ $table->{columns} };
}

sub where
{
	my ($table, $n) = @_;
	my @key = key_of($table, $n);
	return join ' AND ', map { "$table->{names}[$_] = $key[$_]" } 0 .. $#key;
}

sub change
{
	my $table = shift;
	my ($n, $other) = (int rand $keys, int rand $keys);
	my @new = key_of($table, $other);
	my $big = rand() < 0.2 ? "repeat('x$n', 1500)" : 'NULL';
	my $insert = "INSERT INTO $table->{name} VALUES (" . join(', ', key_of($table, $n)) . ", $other, 'new $other', $big)"
	  . ($table->{has_key} ? ' ON CONFLICT DO NOTHING' : '');
	return $insert if rand() < 0.3;
	return "DELETE FROM $table->{name} WHERE " . where($table, $n) if rand() < 0.3;
	return "UPDATE $table->{name} SET v = v || 'x' WHERE " . where($table, $n) if rand() < 0.4;
	return "UPDATE $table->{name} SET u = NULL WHERE u = $other; UPDATE $table->{name} SET u = $other WHERE " . where($table, $n)
	  if rand() < 0.4 && $table->{has_key};
	return "DELETE FROM $table->{name} WHERE " . where($table, $n) . "; $insert" if rand() < 0.3;
	return "TRUNCATE $table->{name}" if rand() < 0.02;
	return "UPDATE $table->{name} SET " . join(', ', map { "$table->{names}[$_] = $new[$_]" } 0 .. $#new) . ' WHERE ' . where($table, $n)
	  . " AND NOT EXISTS (SELECT FROM $table->{name} WHERE " . where($table, $other) . ')';
}

my @tables = map { make_table("r$_") } 1 .. 4;
my $pair = OneReplTest->new(
	proxy => { delay => '0:0.02' },
	schema => "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');" . join ';', map { $_->{create} } @tables);
my @names = map { $_->{name} } @tables;
note $_->{create} for @tables;
$pair->track(@names);
for my $table (@tables)
{
	my $insert = join ';', map { "INSERT INTO $table->{name} VALUES (" . join(', ', key_of($table, $_)) . ", $_, 'old', "
		  . (rand() < 0.2 ? "repeat('y$_', 1500)" : 'NULL') . ') ON CONFLICT DO NOTHING' } grep { rand() < 0.7 } 0 .. $keys - 1;
	$pair->a($insert);
}
$pair->wait_identical(@names);

for my $round (1 .. $rounds)
{
	my $method = one_of('empty', 'repair');
	$pair->tell_proxy('/set?loss=0.1&repeat=0.1&reorder=0.05&damage=0.05');
	# Spoil the central: rows lost, stale, too many.
	$pair->b('SET onerepl.allow_writes = on; ' . join ';', map {
		"DELETE FROM $_->{name} WHERE abs(hashtext(v || u)) % 5 = 0; UPDATE $_->{name} SET u = -u, v = 'stale' WHERE abs(hashtext(v || u)) % 7 = 0"
	} @tables) if $method eq 'repair' && !grep { !$_->{has_key} } @tables;
	my $chunk = one_of(1, 3, 10, 37, 500);
	my $speed = one_of('NULL', 200, 1000);
	$speed = 'NULL' if $chunk == 1;
	my $isolation = one_of('read committed', 'read committed', 'repeatable read');
	$pair->a("BEGIN; " . join(' ', map { "SELECT onerepl_refresh('hq', '$_', '$method', chunk_rows => $chunk, rows_per_second => $speed, isolation => '$isolation');" } @names) . ' COMMIT');
	my $end = time + 90;
	my $running;
	do
	{
		my $sql = 'BEGIN;' . join(';', map { change(one_of(@tables)) } 1 .. 1 + int rand 6) . (rand() < 0.15 ? '; ROLLBACK' : '; COMMIT');
		OneReplTest::ask($pair->node_a, $sql);    # a unique value may be taken: then nothing has changed
		OneReplTest::kill_worker(rand() < 0.5 ? ($pair->node_a, 'sender') : ($pair->node_b, 'receiver')) if rand() < 0.03;
		OneReplTest::wait_up($_) for $pair->nodes;
		(my $status, $running) = OneReplTest::ask($pair->node_a, "SELECT count(*) FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent')");
		$running = 1 if $status != 0;
	} while ($running && time < $end);
	$pair->calm_proxy;
	is($running, '0', "round $round: $method in chunks of $chunk, $isolation, is done (seed $seed)") or $pair->show_state(@names);
	$pair->wait_identical(@names, { name => "round $round: identical" });
	is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', "round $round: no failure");
	$pair->a("SELECT onerepl_verify('hq', chunk_rows => 50)");
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent')", "round $round: verified");
	is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', "round $round: without a difference");
}

$pair->finish;
done_testing();
