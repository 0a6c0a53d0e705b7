# One table of B for several remotes: a refresh or a verification of one remote's table sees, mends and empties that one's rows only.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $tables = <<'SQL';
CREATE TABLE w (id int PRIMARY KEY, u int UNIQUE, v text, big text);
ALTER TABLE w ALTER big SET STORAGE EXTERNAL;
CREATE TABLE pair (name text, n int, v text, PRIMARY KEY (name, n));
CREATE TABLE heap (a int, b text);
SQL
my $pair = OneReplTest->new(links => 0);
my @nodes = ($pair->node_a, OneReplTest::start_node('a2', 0));
$nodes[1]->safe_psql('postgres', 'CREATE EXTENSION onerepl');
$_->safe_psql('postgres', $tables) for @nodes;
$pair->b(<<'SQL');
CREATE TABLE w (v text, u int, id int, branch varchar(9), big text, PRIMARY KEY (id, branch), UNIQUE (branch, u));
ALTER TABLE w ALTER big SET STORAGE EXTERNAL;
CREATE TABLE pair (n int, branch text NOT NULL, name text, v text, PRIMARY KEY (branch, name, n)) PARTITION BY LIST (branch);
CREATE TABLE pair_north PARTITION OF pair FOR VALUES IN ('north');
CREATE TABLE pair_others PARTITION OF pair DEFAULT;
CREATE TABLE heap (branch text, a int, b text);
SQL
my @links = ('north', "it's east");
my @secrets = ('the first secret, long enough', 'the second secret, long enough');
for my $i (0, 1)
{
	my $link = $links[$i] =~ s/'/''/gr;
	$pair->b("SELECT onerepl_add_remote('$link', '$secrets[$i]', tables => '{*}'), onerepl_set_target('$link', 'public', branch_column => 'branch', branch => '$link')");
}
OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $pair->{listen}) }, 20);
$nodes[$_]->safe_psql('postgres', "SELECT onerepl_add_central('hq', 'http://127.0.0.1:$pair->{listen}', '$secrets[$_]')") for 0, 1;

sub on { my ($i, $sql) = @_; return $nodes[$i]->safe_psql('postgres', $sql); }

my %columns = (w => 'id, u, v, md5(big)', pair => 'name, n, v', heap => 'a, b');

sub rows_of
{
	my ($node, $table, $condition) = @_;
	return $node->safe_psql('postgres', "SELECT $columns{$table} FROM $table WHERE $condition ORDER BY 1, 2");
}

# Each remote's rows are on B as there.
sub same
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $i (0, 1)
	{
		my $branch = $links[$i] =~ s/'/''/gr;
		for my $table (sort keys %columns)
		{
			my ($on_a, $on_b);
			ok(OneReplTest::wait_for(sub {
					($on_a, $on_b) = (rows_of($nodes[$i], $table, 'true'), rows_of($pair->node_b, $table, "branch = '$branch'"));
					return $on_a eq $on_b;
				}, 40), "$name: $table of $links[$i]") or do { $pair->show_state; is($on_b, $on_a, 'rows'); };
		}
	}
	return;
}

sub fill { my $i = shift; return "INSERT INTO w SELECT n, n, 'of $i', CASE WHEN n % 3 = 0 THEN repeat(n::text, 2000) END FROM generate_series(1, 600) AS n"; }

# The other remote's rows on B: none of them may be rewritten.
sub others { return $pair->b(join ' UNION ALL ', map { "SELECT '$_', string_agg(concat(tableoid, ctid, xmin), ' ' ORDER BY tableoid, ctid) FROM $_ WHERE branch <> 'north'" } sort keys %columns); }

sub wait_done
{
	my ($i, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	OneReplTest::poll_ok($nodes[$i], "SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$name: done", deadline => 60) or $pair->show_state;
	return;
}

# --- both are filled, at the same time; the same keys and unique values are in use everywhere
for my $i (0, 1)
{
	on($i, fill($i));
	on($i, "INSERT INTO pair SELECT chr(65 + n % 57), n, 'of $i' FROM generate_series(1, 300) AS n");
	on($i, "INSERT INTO heap SELECT n % 7, 'of $i' FROM generate_series(1, 50) AS n");
}
on($_, "SELECT onerepl_add_table(t::regclass, initial => 'refresh') FROM unnest(ARRAY['w', 'pair', 'heap']) AS t") for 0, 1;
wait_done($_, "filled $_") for 0, 1;
same('filled');
$pair->b("SET onerepl.allow_writes = on; INSERT INTO w (id, u, v, branch) VALUES (100, 100, 'nobody''s', 'none')");

# --- a refresh that stands still in the middle while rows change that it has reached, and such that it has not
for my $method ('empty', 'repair')
{
	$pair->b("SET onerepl.allow_writes = on; UPDATE w SET u = u + 20000 WHERE branch = 'north'; UPDATE w SET u = 20600 - u + 1, v = 'stale' WHERE id > 300 AND branch = 'north';
	          DELETE FROM w WHERE id % 7 = 0 AND branch = 'north'; INSERT INTO w (id, u, branch) VALUES (-1, -1, 'north'), (400000, 12345, 'north');
	          INSERT INTO pair VALUES (0, 'north', 'surplus', 'x'); UPDATE pair SET v = 'stale' WHERE branch = 'north' AND n % 2 = 0;
	          INSERT INTO heap VALUES ('north', 1, 'surplus')");
	on(0, "SELECT onerepl_refresh('hq', 'w', '$method', chunk_rows => 50, rows_per_second => 200)");
	OneReplTest::poll_ok($nodes[0], 'SELECT rows_done >= 150 FROM onerepl.refresh ORDER BY id DESC LIMIT 1', "$method: rows are copied");
	on(0, "SELECT onerepl_refresh_pause('hq')");
	for my $sql (
		"INSERT INTO w VALUES (5000, 5000, 'ahead'), (-5, -5, 'behind')",
		"UPDATE w SET v = 'changed' WHERE id IN (9, 10, 589, 590)",
		'DELETE FROM w WHERE id IN (20, 21, 580, 581)',
		'UPDATE w SET id = 6000 + id WHERE id IN (40, 42); UPDATE w SET id = -id WHERE id IN (550, 552)',
		'UPDATE w SET u = -530 WHERE id = 531; UPDATE w SET u = 531 WHERE id = 70')
	{
		on(0, $sql);
		on(1, "UPDATE pair SET v = v || '.' WHERE n = 1");
	}
	OneReplTest::poll_ok($nodes[0], 'SELECT bool_and(written_to = numbered_to) FROM onerepl_status()', "$method: changes in the window");
	is($pair->b("SELECT string_agg(v, ' ' ORDER BY id) FROM w WHERE id IN (9, 10, 5000, -5) AND branch = 'north'"), 'behind changed changed ahead', "$method: are written");
	on(0, "SELECT onerepl_refresh_resume('hq'); UPDATE onerepl.refresh SET rows_per_second = NULL WHERE state = 'running'");
	on(0, "SELECT onerepl_refresh('hq', 'pair', '$method', chunk_rows => 50), onerepl_refresh('hq', 'heap', '$method')");
	wait_done(0, $method);
	same($method);
	is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', "$method: no failure");
	is($pair->b('SELECT v FROM w WHERE branch = $$none$$'), "nobody's", "$method: rows of no remote stay");
	on(0, 'TRUNCATE w; ' . fill(0));
	same("$method: filled again");
}
on(1, "UPDATE pair SET v = 'of 1' WHERE n = 1");
same('after the windows');

# --- verified: they agree; one changed byte is found, named and mended, and the others' rows are as they were
my $rows = others();
sub verify
{
	my ($i, $arguments) = @_;
	on($i, "SELECT onerepl_verify('hq'$arguments)");
	wait_done($i, 'verified');
	return;
}
verify($_, ', chunk_rows => 70') for 0, 1;
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'both agree');
is($pair->b('SELECT count(*) || bool_and(complete)::text FROM onerepl.verified'), '6true', 'and were looked at');
$pair->b("SET onerepl.allow_writes = on; UPDATE w SET v = 'Of 0' WHERE id = 300 AND branch = 'north'");
verify(1, ", 'w'");
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'a byte of one is nothing to the other one');
verify(0, ", 'w', chunk_rows => 70, with_rows => true");
is($pair->b("SELECT d.key::text || d.columns::text FROM onerepl.differing_row AS d"), '{300}{v}', 'it is named');
$pair->b("SET onerepl.allow_writes = on; INSERT INTO w (id, u, v, branch) VALUES (301000, 301000, 'surplus', 'north')");
on(0, "SELECT onerepl_refresh('hq', 'w', 'repair', key_from => '{299}', key_to => '{400000}')");
wait_done(0, 'a range');
same('a range is mended');
is(others(), $rows, 'and not one row of the others was written in all that');

# --- a unique value of all: the row of another remote does not give way, unless the administrator says so
$pair->b("CREATE UNIQUE INDEX all_u ON w (u) WHERE u BETWEEN 7000 AND 8000");
on(1, "INSERT INTO w VALUES (7000, 7000, 'mine')");
same('a value is taken');
on(0, "INSERT INTO w VALUES (7001, 7000, 'mine, too')");
$pair->poll_b("SELECT sqlstate = '23505' FROM onerepl.failed", 'as ever, a value that is taken is F');
$pair->b("SELECT onerepl_resolve_all('north', 'skip')");
for my $method ('repair', 'empty')
{
	on(0, "SELECT onerepl_refresh('hq', 'w', '$method', chunk_rows => 100)");
	$pair->poll_b("SELECT count(*) = 1 AND min(sqlstate) = '23505' FROM onerepl.failed", "$method: a clash with another remote's row is F") or $pair->show_state;
	is($pair->b("SELECT branch || ' ' || v FROM w WHERE u = 7000"), "it's east mine", "$method: which stays");
	$pair->b('SET onerepl.allow_writes = on; DROP INDEX all_u') if $method eq 'empty';
	$pair->b("SELECT onerepl_resolve_all('north', '" . ($method eq 'empty' ? 'retry' : 'skip') . "')");
	wait_done(0, $method);
}
same('in the end');
$nodes[1]->stop('fast');
$pair->finish;
done_testing();
