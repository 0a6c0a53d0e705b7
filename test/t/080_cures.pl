# docs/trouble.md is what the statuses say, and its cures cure: this test reads the page, makes each of its situations, compares, does what
# is written there, and then both sides are in step and the tables equal.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file('docs/trouble.md');
$OneReplTest::secret = 'the same secret, 16 characters or more';
my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY, v int)', track => ['t']);
my ($a, $b) = $pair->nodes;
my $id = 0;

# One more change on A; gives its id.
sub change { $id++; $pair->a("INSERT INTO t VALUES ($id, 1)"); return $id; }
sub repair_b { return $pair->b("SET onerepl.allow_writes = on; $_[0]"); }
sub arrived { $pair->wait_identical('t', { name => 'arrived' }); return $pair->wait_settled('arrived'); }

# Each situation of the page by the beginning of its name, and how it comes about.
my %make = (
	'A paused the link' => sub { $pair->a("SELECT onerepl_pause('hq')"); change() },
	'B paused the link' => sub { $pair->b("SELECT onerepl_pause('branch')"); change() },
	'a record is blocked' => sub { $pair->a("SELECT onerepl_block('hq', numbered_to + 1) FROM onerepl_status()"); change() },
	'something keeps B from writing' => sub {
		my $session = $b->background_psql('postgres', on_error_stop => 0);
		$session->query_safe('BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE');
		change();
		return sub { eval { $session->quit } };
	},
	'something keeps B from taking' => sub {
		$pair->b(<<'SQL');
CREATE FUNCTION breaks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space is left' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER breaks BEFORE INSERT OR UPDATE ON onerepl.contact FOR EACH ROW EXECUTE FUNCTION breaks();
ALTER TABLE onerepl.contact ENABLE ALWAYS TRIGGER breaks;
SQL
		change();
	},
	'B\'s server does not run' => sub { $b->stop; change() },
	'A\'s server does not run' => sub { change(); $a->stop },
	'the secrets differ' => sub { $pair->a("SELECT onerepl_change_link('hq', secret => 'not the one that B knows, but long')"); change() },
	'23505' => sub { repair_b('INSERT INTO t VALUES (' . ($id + 1) . ', 2)'); change() },
	'P0002' => sub { my $n = change(); arrived(); repair_b("DELETE FROM t WHERE id = $n"); $pair->a("UPDATE t SET v = 3 WHERE id = $n") },
	'23514' => sub { $pair->b('ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0)'); $pair->a('INSERT INTO t VALUES (' . ++$id . ', -1)') },
	'P0001' => sub {
		$pair->b(<<'SQL');
CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not here'; END $$;
CREATE TRIGGER refuses BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuses();
ALTER TABLE t ENABLE ALWAYS TRIGGER refuses;
SQL
		change();
	},
	'42P01' => sub { $pair->a('CREATE TABLE lacking (id int PRIMARY KEY)'); $pair->track('lacking'); $pair->a('INSERT INTO lacking VALUES (1)') },
	'42703' => sub { $pair->a('ALTER TABLE t ADD fresh int'); $pair->a('INSERT INTO t VALUES (' . ++$id . ', 1, 2)') },
	'42501' => sub { $pair->b("SELECT onerepl_forbid('branch', '{*}'), onerepl_allow('branch', '{public.lacking}')"); change() },
	'42883' => sub {
		$pair->b(<<'SQL');
CREATE FUNCTION inner_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION calls(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN inner_one(v); END';
ALTER TABLE t ADD CHECK (calls(id) > 0);
SQL
		change();
	},
	'55000' => sub {
		$pair->b('CREATE ROLE clerk; GRANT CREATE ON SCHEMA public TO clerk; ALTER TABLE t OWNER TO clerk');
		$pair->a('SELECT onerepl_execute_ddl($$CREATE INDEX t_v ON t (v)$$)');
		change();
	},
	'a copy was cancelled' => sub {
		$pair->a("SELECT onerepl_refresh('hq', 't', 'repair', rows_per_second => 1, chunk_rows => 1)");
		OneReplTest::poll_ok($b, "SELECT state = 'refreshing' FROM onerepl_status()", 'a copy runs');
		$pair->a("SELECT onerepl_refresh_cancel('hq', 't')");
	},
	'a verification found' => sub { repair_b('DELETE FROM t WHERE id = (SELECT min(id) FROM t)'); $pair->a("SELECT onerepl_verify('hq', 't')") },
	'the log reached' => sub { $pair->a('UPDATE onerepl.log_state SET capture_stopped = true; SELECT onerepl.set_capture_stopped(true)'); change() },
	'B was restored' => sub { my $copy = OneReplTest::save($b); change(); arrived(); OneReplTest::restore($b, $copy) },
	'A was restored' => sub { my $copy = OneReplTest::save($a); change(); arrived(); OneReplTest::restore($a, $copy); $id-- },
	'the same, and A' => sub {
		my $copy = OneReplTest::save($a);
		change();
		arrived();
		$b->stop;
		OneReplTest::restore($a, $copy);
		$id--;
		my $m = $pair->a('SELECT numbered_to FROM onerepl_status()');
		change() for 1 .. 5;
		OneReplTest::poll_ok($a, 'SELECT numbered_to FROM onerepl_status()', 'numbered', wanted => $m + 5);
		$b->start;
	},
	'A\'s database or extension' => sub {
		$pair->a('DROP EXTENSION onerepl');
		$pair->a('CREATE EXTENSION onerepl');
		$pair->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $OneReplTest::secret);
		$pair->track('t', 'lacking');
		change();
	},
	'B was promoted' => sub { arrived(); $pair->b("SELECT onerepl_promote('branch')"); change() });

# ---------------------------------------------------------------- the page

# Its rows of situations that have a cure in statements: hashes of situation, a, b, cure.
my @rows;
for my $line (grep { /^\| / } split /\n/, $page)
{
	my (undef, @cells) = split /\s*\|\s*/, $line;
	next unless @cells == 4 && $cells[3] =~ /`[AB]: /;
	push @rows, { situation => $cells[0], a => $cells[1], b => $cells[2], cure => $cells[3] };
}

sub maker_of { my $situation = shift; return grep { index($situation, $_) == 0 } keys %make; }

# N stands for a number.
sub pattern { my $cell = quotemeta shift; $cell =~ s/\bN\b/\\d+/g; return "^$cell\$"; }

# What stands for N in a cure.
sub number
{
	my $row = shift;
	return $1 if $row->{cure} =~ /read_point/ && $pair->b('SELECT what_to_do FROM onerepl_status()') =~ /read_point => (\d+)/;
	for my $node (grep { $row->{cure} =~ /\bN\b/ } $pair->nodes)
	{
		return $1 if $node->safe_psql('postgres', 'SELECT state FROM onerepl_status()') =~ /(?:failed|blocked) at (\d+)/;
	}
	return 'N';
}

my %what;    # to do, as the statuses say it
sub compare
{
	my $row = shift;
	for ([ $a, $row->{a} ], [ $b, $row->{b} ])
	{
		my ($node, $wanted) = @$_;
		next if $wanted eq '';
		my $pattern = pattern($wanted);
		$pattern =~ s/'/''/g;
		my $name = "$row->{situation}: " . $node->name . " says $wanted";
		OneReplTest::poll_ok($node, "SELECT state ~ '$pattern' FROM onerepl_status()", $name) or diag($node->safe_psql('postgres', 'SELECT state FROM onerepl_status()'));
		$what{ $node->safe_psql('postgres', 'SELECT what_to_do FROM onerepl_status()') } = $row->{situation};
	}
	return;
}

sub cure
{
	my $row = shift;
	my $n = number($row);
	for ($row->{cure} =~ /`([AB]: [^`]+)`/g)
	{
		my ($side, $sql) = /^([AB]): (.*)/;
		$sql =~ s/\bN\b/$n/g;
		my $node = $side eq 'A' ? $a : $b;
		$sql eq 'start' ? $node->start : $node->safe_psql('postgres', $sql);
	}
	return;
}

arrived();
for my $row (@rows)
{
	my ($maker) = maker_of($row->{situation});
	ok(defined $maker, "the test knows the situation: $row->{situation}") or next;
	my $end = $make{$maker}->();
	compare($row);
	if ($row->{situation} =~ /^(\w{5}): /)
	{
		is($pair->b('SELECT DISTINCT sqlstate FROM onerepl.failed'), $1, "the error is $1");
	}
	cure($row);
	$end->() if ref $end eq 'CODE';
	delete $make{$maker};
	my $settled = $pair->wait_identical('t', { name => "$row->{situation}: equal after the cure" });
	OneReplTest::poll_ok($_, 'SELECT state FROM onerepl_status()', "$row->{situation}: in step, " . $_->name, wanted => 'in step') or $settled = 0 for $pair->nodes;
	last unless $settled;
	$pair->verify_equal('t');
}
is_deeply([ sort keys %make ], [], 'the page has all situations that the test knows');

# What the statuses said is on the page, but for numbers, names and what was seen.
sub plain { my $text = shift; $text =~ s/ Seen: .*//s; $text =~ s/\b\d+\b/N/g; $text =~ s/`//g; return $text; }
my $plain_page = plain($page);
ok(index($plain_page, plain($_)) >= 0, "on the page: what to do when $what{$_}") or diag(plain($_)) for sort grep { !/^Nothing/ } keys %what;

# And the page has every state that there is.
my $sources = join "\n", map { slurp_file($_) } 'src/sql/56_status.sql';
my @states = $sources =~ /^\s+SELECT (?:format\()?'([a-z][^']*)'/mg;
cmp_ok(scalar @states, '>', 15, 'states are found in the source');
for my $state (@states)
{
	(my $shown = $state) =~ s/%s/N/g;
	ok(index($page, $shown =~ s/"N".*//sr) >= 0, "on the page: state $shown");
}
$pair->finish;
done_testing();
