# What a remote may write at B (P18). The test is the remote: it has the secret, and says what it likes.
use strict;
use warnings;

use lib 'test/lib';
use OneReplRemote;
use OneReplTest;
use Test::More;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $b = OneReplTest::start_node('b', 0, "onerepl.listen = '127.0.0.1:$port'");
my $secret = $OneReplTest::secret;

sub b { return $b->safe_psql('postgres', shift); }

b(<<'SQL');
CREATE EXTENSION onerepl;
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION postgres_fdw;
CREATE SCHEMA sales;
CREATE SCHEMA private;
CREATE TABLE sales.orders (id int PRIMARY KEY, v text);
CREATE TABLE sales.others (id int PRIMARY KEY, v text);
CREATE TABLE private.t (id int PRIMARY KEY, v text);
CREATE TABLE public.parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE private.low PARTITION OF public.parts FOR VALUES FROM (0) TO (100);
CREATE TABLE private.of_extension (id int PRIMARY KEY, v text);
ALTER EXTENSION postgres_fdw ADD TABLE private.of_extension;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw;
CREATE FOREIGN TABLE private.far (id int, v text) SERVER other;
INSERT INTO sales.others VALUES (1, 'mine');
INSERT INTO private.t VALUES (1, 'mine');
SQL
b("SELECT onerepl_add_remote('branch', '$secret', tables => '{sales.orders,public.*}')");

my $remote = OneReplRemote->new(node => $b, listen => $port, link => 'branch', secret => $secret);
my @columns = ([ 'id', 'int4', 1 ], [ 'v', 'text' ]);

sub table { my ($schema, $name, @of) = @_; return $remote->description($schema, $name, @of ? @of : @columns); }

# What B makes of a record about a table that is described in front of it.
sub outcome_of
{
	my ($record, $table) = @_;
	$remote->send($remote->describe($table)) if $table;
	$remote->send($record);
	return $remote->outcome;
}

sub refused_ok
{
	my ($record, $table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(outcome_of($record, $table), qr/^42501 /, $name);
	ok($remote->skip, "... and it can be skipped");
	return;
}

# --- what is named is written
my $orders = table('sales', 'orders');
is(outcome_of($remote->insert($orders, 1, 'one'), $orders), 'written', 'a table that is named');
is(b('SELECT v FROM sales.orders'), 'one', 'has the row');
my $parts = table('public', 'parts');
is(outcome_of($remote->insert($parts, 1, 'one'), $parts), 'written', 'a partitioned table of a schema that is named, with a partition elsewhere');
my $low = table('private', 'low');
is(outcome_of($remote->insert($low, 2, 'two'), $low), 'written', 'a partition of a table that is named');

# --- what is not named is not, whatever comes for it
for my $case ([ 'private', 't', 'of another schema' ], [ 'sales', 'others', 'beside one that is named' ])
{
	my ($schema, $name, $what) = @$case;
	my $id = table($schema, $name);
	refused_ok($remote->insert($id, 2, 'two'), $id, "insert into a table $what");
	is(b("SELECT tgname FROM pg_trigger WHERE tgrelid = '$schema.$name'::regclass"), '', '... which gets no guard');
	refused_ok($remote->update($id, 1, 'changed'), undef, "update of a table $what");
	refused_ok($remote->delete($id, 1), undef, "delete from a table $what");
	refused_ok($remote->truncate($id), undef, "truncate of a table $what");
	refused_ok($remote->chunk($id, 1, 'n'), undef, "a refresh of a table $what begins");
	refused_ok($remote->chunk($id, 2 | 4, 'n', [ 5, 'five' ]), undef, "a refresh of a table $what");
	refused_ok($remote->chunk($id, 32 | 4, 'n', [ 0, 0 ]), undef, "a verification of a table $what");
	is(b("SELECT string_agg(id || v, ' ') FROM $schema.$name"), '1mine', '... and its rows are as they were');
	is(b("SELECT count(*) FROM onerepl.refresh_window AS w, onerepl.difference AS d WHERE '$schema.$name'::regclass IN (w.relation, d.relation)"), '0',
		'... and no view tells of it');
}
my $absent = table('private', 'absent');
refused_ok($remote->insert($absent, 1, 'one'), $absent, 'a table that is not there, of a schema that is not named');
my $missing = table('public', 'missing');
like(outcome_of($remote->insert($missing, 1, 'one'), $missing), qr/^42P01 /, 'one of a schema that is named is missed');
$remote->skip;
is(b("SELECT hint ~ 'onerepl_allow' FROM onerepl.failed"), '', 'nothing is left in F');

# --- '*' does not mean what is never reached
b("SELECT onerepl_allow('branch', '{*}')");
like(b("SELECT may_write FROM onerepl_status()"), qr/^\*/, 'the status tells of *');
my $link = table('onerepl', 'link', [ 'id', 'int4', 1 ], [ 'ddl', 'text' ]);
refused_ok($remote->update($link, 1, 'apply'), $link, 'its own row of onerepl.link');
is(b('SELECT ddl FROM onerepl.link'), 'stop', '... which is as it was');
my $journal = table('onerepl', 'journal_entry', [ 'id', 'int8', 1 ], [ 'message', 'text' ]);
refused_ok($remote->delete($journal, 1), $journal, 'the journal');
is(b("SELECT count(*) FROM pg_trigger WHERE tgname = '!onerepl_guard' AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'onerepl'::regnamespace)"), '0',
	'no guard on any of them');
for my $case (
	[ 'pg_catalog', 'pg_authid', 'a catalog' ],
	[ 'information_schema', 'sql_features', 'the information schema' ],
	[ 'private', 'of_extension', 'what belongs to an extension' ],
	[ 'private', 'far', 'a foreign table that is no partition' ])
{
	my $id = table($case->[0], $case->[1]);
	refused_ok($remote->insert($id, 1, 'one'), $id, $case->[2]);
}
my $toast = table('pg_toast', b("SELECT relname FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'private.t'::regclass)"));
refused_ok($remote->truncate($toast), $toast, 'a toast table');
b("SELECT onerepl_allow('branch', '{private.of_extension}')");
my $of_extension = table('private', 'of_extension');
is(outcome_of($remote->insert($of_extension, 1, 'one'), $of_extension), 'written', 'what belongs to an extension, when it is named itself');

# --- the hint is the cure, and what is taken back holds at once
b("SELECT onerepl_forbid('branch', '{*}')");
my $t = table('private', 't');
like(outcome_of($remote->insert($t, 3, 'three'), $t), qr/^42501 link "branch" may not write table private.t/, 'F after onerepl_forbid');
my $hint = b('SELECT hint FROM onerepl.failed');
like($hint, qr/SELECT onerepl_allow\('branch', '\{private\.t\}'\);/, 'the hint has the statement');
b($hint =~ /(SELECT onerepl_allow\(.*?\);)/);
b("SELECT onerepl_resolve_all('branch', 'retry')");
ok(OneReplTest::wait_for(sub { $remote->written == $remote->{last} }, 20), 'which helps');
is(b("SELECT string_agg(id || v, ' ' ORDER BY id) FROM private.t"), '1mine 3three', '... and the row is there');
b("SELECT onerepl_forbid('branch', '{private.t}')");
refused_ok($remote->insert($t, 4, 'four'), undef, 'a table that was written before');

# --- told statements
b(<<'SQL');
CREATE DOMAIN private.told_domain AS int;
CREATE FUNCTION private.told_function() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TABLE private.told (id int PRIMARY KEY, d private.told_domain, v text);
CREATE INDEX told_index ON private.told (v);
CREATE TRIGGER told AFTER INSERT ON private.told FOR EACH ROW EXECUTE FUNCTION private.told_function();
SQL
OneReplTest::apply_statements($b);
refused_ok($remote->statement('ALTER TABLE private.t ADD x int', $t), undef, 'a statement about a table that is not named');
refused_ok($remote->statement('ALTER TABLE sales.orders SET SCHEMA private', $orders), undef, 'one that moves a table to where the link may not write');
refused_ok($remote->statement('ALTER SCHEMA sales RENAME TO public2', $orders), undef, 'one that renames a schema with others in it');
my $new = table('private', 'new');
refused_ok($remote->statement('CREATE TABLE private.new (id int)', $new), $new, 'one that makes a table that is not named');
is(b("SELECT to_regclass('private.new') IS NULL AND to_regclass('sales.orders') IS NOT NULL"), 't', 'nothing of that was done');
is(outcome_of($remote->statement('ALTER TABLE sales.orders ADD x int', $orders)), 'written', 'one about a table that is named');
is(b("SELECT count(*) FROM pg_attribute WHERE attrelid = 'sales.orders'::regclass AND attname = 'x'"), '1', '... is executed');

# --- their text does something else than they say, or is the administrator's
for my $id ($orders, undef)
{
	my $whose = $id ? 'captured' : 'of the administrator';
	my %statements = (
		'ALTER TABLE private.t ADD y int' => 'changes another table',
		'ALTER TABLE private.t RENAME TO taken' => 'gives another table a name',
		'ALTER TABLE private.t SET SCHEMA public' => 'moves another table to where the link may write',
		'ALTER SCHEMA private RENAME TO mine' => 'gives a schema another name',
		'ALTER TABLE sales.orders ADD y int; ALTER TABLE private.t RENAME v TO w' => 'changes another table, too',
		'DROP TABLE private.t' => 'drops another table',
		'DROP SCHEMA private CASCADE' => 'drops another schema',
		'ALTER TABLE public.parts ATTACH PARTITION private.t FOR VALUES FROM (500) TO (600)' => 'makes another table a part of one that the link may write',
		'ALTER TABLE sales.orders INHERIT private.t' => 'makes a table a part of another one',
		'CREATE TABLE private.y (id int)' => 'makes a table elsewhere',
		'CREATE TABLE private.y AS SELECT 1 AS id' => 'makes a table elsewhere with rows',
		'CREATE INDEX ON private.t (v)' => 'makes an index of another table',
		'CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; CREATE TRIGGER t BEFORE INSERT ON private.t FOR EACH ROW EXECUTE FUNCTION public.f()' =>
		  'makes a trigger of another table',
		'CREATE RULE r AS ON INSERT TO private.t DO INSTEAD NOTHING' => 'makes a rule of another table',
		'ALTER TABLE onerepl.link ADD y int' => 'changes a table of onerepl',
		'GRANT ALL ON private.t TO PUBLIC' => 'lets others at another table',
		'GRANT ALL ON ALL TABLES IN SCHEMA private TO PUBLIC' => 'lets others at all tables of a schema',
		'DROP DOMAIN private.told_domain CASCADE' => 'takes a column of another table by a domain',
		'DROP FUNCTION private.told_function() CASCADE' => 'takes a trigger of another table by its function',
		'DROP INDEX private.told_index' => 'drops an index of another table',
	);
	# Kinds that no remote captures.
	$statements{$_} = "is no captured kind: $_" for $id ? ('CREATE VIEW private.told_view AS SELECT * FROM private.t', 'LOCK TABLE sales.orders', 'CLUSTER private.t USING t_pkey',
		'REASSIGN OWNED BY CURRENT_USER TO CURRENT_USER', 'ALTER DOMAIN private.told_domain ADD CHECK (VALUE > 100)') : ();
	for my $text (sort keys %statements)
	{
		refused_ok($remote->statement($text, $id), undef, "one $whose that $statements{$text}");
	}
	for my $text ('DELETE FROM private.t', "UPDATE onerepl.link SET paused = true", 'TRUNCATE private.t', 'DO $$BEGIN DELETE FROM private.t; END$$',
		"SELECT 1; COPY private.t FROM PROGRAM 'echo 1'", 'COMMIT')
	{
		like(outcome_of($remote->statement($text, $id)), qr/^22023 /, "one $whose: $text");
		ok($remote->skip, '... and it can be skipped');
	}
}
is(b("SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'private.t'::regclass AND attnum > 0"), 'id v', 'the other table is what it was');
is(b("SELECT string_agg(id || v, ' ' ORDER BY id) FROM private.t"), '1mine 3three', '... with its rows');
is(outcome_of($remote->statement('CREATE TABLE public.made (id serial PRIMARY KEY, v text); CREATE INDEX ON public.made (v); COMMENT ON TABLE public.made IS $$x$$')), 'written',
	'one of the administrator about what the link may write');
is(outcome_of($remote->statement('ALTER TABLE public.made DROP id; DROP TABLE public.made')), 'written', '... and which drops it');
b('CREATE TABLE private.middle PARTITION OF public.parts FOR VALUES FROM (200) TO (300); CREATE TABLE private.high PARTITION OF public.parts FOR VALUES FROM (300) TO (400); ALTER TABLE private.middle OWNER TO clerk; ALTER TABLE private.high OWNER TO clerk');
is(outcome_of($remote->statement('DROP TABLE private.high')), 'written', '... and one that drops a partition elsewhere of a table that is named');
is(outcome_of($remote->statement('DROP TABLE public.parts')), 'written', '... and one that drops the table with those elsewhere');
is(b("SELECT concat(to_regclass('public.parts'), to_regclass('private.low'), to_regclass('private.middle'), to_regclass('private.high'))"), '', '... is executed');
is(outcome_of($remote->statement('CREATE EXTENSION pg_trgm')), 'written', '... and one that is about no table');

# --- a partition that is named by itself
b("CREATE TABLE private.whole (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE private.slice PARTITION OF private.whole FOR VALUES FROM (0) TO (100); CREATE TABLE private.rest PARTITION OF private.whole DEFAULT");
b("SELECT onerepl_allow('branch', '{private.slice}')");
my $slice = table('private', 'slice');
is(outcome_of($remote->insert($slice, 1, 'one'), $slice), 'written', 'a partition that is named, of a table that is not');
my ($of_whole) = OneReplTest::fails($b, "INSERT INTO private.whole VALUES (2, 'own')");
is($of_whole, '25006', '... its rows are guarded by the name of that table, too');
my ($whole, $rest) = (table('private', 'whole'), table('private', 'rest'));
refused_ok($remote->insert($whole, 3, 'three'), $whole, '... which the link may not write');
refused_ok($remote->insert($rest, 300, 'three'), $rest, '... nor another part of it');

$b->stop('fast');
done_testing();
