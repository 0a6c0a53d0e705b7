# What a told statement can do on B (P19): what the owner of the table, or the role that was named, can; never more.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $pair = OneReplTest->new(schema => <<'SQL');
CREATE ROLE writer; CREATE ROLE keeper;
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE of_super (id int PRIMARY KEY, v text);
GRANT CREATE ON SCHEMA public TO keeper, writer;
SQL
$pair->a('ALTER TABLE t OWNER TO writer; CREATE SCHEMA w AUTHORIZATION writer; CREATE SCHEMA w2 AUTHORIZATION writer');
$pair->a('SET ROLE writer; CREATE FUNCTION w.pg_read_file(text) RETURNS text LANGUAGE sql AS $$ SELECT $1 $$');
$pair->b("ALTER TABLE t OWNER TO keeper; SELECT onerepl_set_ddl('branch', 'apply')");
$pair->track('t', 'of_super');
$pair->a("INSERT INTO t VALUES (1, 'one'); INSERT INTO of_super VALUES (1, 'one')");
$pair->wait_identical('t', 'of_super');

# The statement is F for this reason; it is skipped, or tried once more after something was done on B.
sub fails_ok
{
	my ($sql, $wanted, $name, $cure) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->a($sql);
	$pair->poll_b("SELECT string_agg(sqlstate || ' ' || message, ';') ~ '$wanted' FROM onerepl.failed", $name) or $pair->show_state;
	ok($pair->b('SELECT bool_and(hint <> $$$$) FROM onerepl.failed') eq 't' || $wanted =~ /denied|restricted|42501$/, '... with a hint');
	return if defined $cure && $cure eq '';
	$pair->b($cure) if $cure;
	$pair->b(sprintf "SELECT onerepl_resolve_all('branch', '%s')", $cure ? 'retry' : 'skip');
	$pair->wait_settled('resolved');
	return;
}

# --- the owner's own function in front of PostgreSQL's
my $reads = "ALTER TABLE t ALTER v TYPE text USING pg_read_file('PG_VERSION')";
fails_ok("SET ROLE writer; SET search_path = w, pg_catalog, public; $reads", '^3F000 schema "w"', 'a schema of the path is not on B', '');
$pair->b("CREATE SCHEMA w; GRANT USAGE ON SCHEMA w TO keeper; SELECT onerepl_resolve_all('branch', 'retry')");
$pair->poll_b("SELECT string_agg(sqlstate, ';') FROM onerepl.failed", 'names looked for before pg_catalog', wanted => '0A000');
$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_settled('skipped');
is($pair->b('SELECT v FROM t'), 'one', 'no file was read');

# --- an expression has the rights of the owner on B, whoever it was on A
fails_ok($reads, '^42501 permission denied for function pg_read_file', 'an expression that the owner may not execute');
is($pair->b('SELECT v FROM t'), 'one', '... was not executed');

# --- never as a superuser
fails_ok('ALTER TABLE of_super ADD x int', '^42501 .*belongs to a superuser', 'a table of a superuser', 'ALTER TABLE of_super OWNER TO keeper');
is($pair->b("SELECT count(*) FROM pg_attribute WHERE attrelid = 'of_super'::regclass AND attname = 'x'"), '1', 'executed when it is an ordinary owner\'s');
fails_ok("SELECT onerepl_execute_ddl('CREATE ROLE evil SUPERUSER')", '^42501 nobody was named', 'a given statement');
is((OneReplTest::fails($pair->node_b, "SELECT onerepl_set_ddl('branch', 'apply', 'postgres')"))[0], '42501', 'no superuser can be named');
$pair->b("SELECT onerepl_set_ddl('branch', 'apply', 'keeper')");
fails_ok("SELECT onerepl_execute_ddl('ALTER ROLE writer SUPERUSER')", '^42501', 'a given statement has the rights of who was named');
$pair->a("SELECT onerepl_execute_ddl('CREATE INDEX t_v ON t (v)')");
$pair->wait_settled('one that it may execute');
is($pair->b("SELECT to_regclass('t_v')"), 't_v', 'is executed');
$pair->b("ALTER ROLE keeper SUPERUSER");
fails_ok("SELECT onerepl_execute_ddl('CREATE INDEX t_v2 ON t (v)')", '^42501', 'a role that became a superuser', 'ALTER ROLE keeper NOSUPERUSER');
is($pair->b("SELECT count(*) FROM pg_roles WHERE rolsuper AND rolname <> current_user"), '0', 'nobody became a superuser');

# --- expressions reach what the role reaches, and no more
$pair->b("CREATE TABLE aside (v text); INSERT INTO aside VALUES ('kept'); CREATE TABLE keepers (LIKE aside); ALTER TABLE keepers OWNER TO keeper");
my $writes = sub { my ($table) = @_; return sprintf <<'SQL', $table };
SELECT onerepl_execute_ddl($ddl$
CREATE OR REPLACE FUNCTION public.writes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.%s VALUES ('by a statement'); RETURN 1; END $$;
ALTER TABLE t ADD COLUMN w int DEFAULT public.writes(); ALTER TABLE t DROP COLUMN w
$ddl$)
SQL
$pair->a('CREATE TABLE aside (v text); CREATE TABLE keepers (v text)');
fails_ok($writes->('aside'), '^42501 permission denied for table aside', 'a function in an expression');
is($pair->b('SELECT * FROM aside'), 'kept', '... did nothing');
$pair->a($writes->('keepers'));
$pair->wait_settled('one that writes what the role may write');
like($pair->b('SELECT string_agg(v, $$;$$) FROM keepers'), qr/^by a statement/, '... though the link may not: the role is trusted');
$pair->a(q{CREATE FUNCTION sets() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$});
$pair->b(q{CREATE FUNCTION sets() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'RESET ROLE'; RETURN 1; END $$});
fails_ok('SET ROLE writer; ALTER TABLE t ALTER v TYPE text USING CASE WHEN sets() = 1 THEN v END', '^42501 cannot set parameter "role" within security-restricted operation', 'one that wants the role back');
is((OneReplTest::fails($pair->node_a, q{SELECT onerepl_execute_ddl('SET search_path = w; ALTER TABLE t ADD z int')}))[0], '22023', 'settings are not among what is given');

$pair->b("GRANT postgres TO keeper");
fails_ok("SELECT onerepl_execute_ddl('ALTER ROLE writer SUPERUSER')", '^42501', 'a member of a superuser has not his rights');
$pair->b("REVOKE postgres FROM keeper");

# --- a path that means the same
$pair->b('REVOKE USAGE ON SCHEMA w FROM PUBLIC; REVOKE ALL ON SCHEMA w FROM keeper');
fails_ok('SET ROLE writer; SET search_path = w, public; ALTER TABLE t ADD x int', '^42501 schema "w" .* "keeper"', 'a schema that the role would look past', 'GRANT USAGE ON SCHEMA w TO keeper');
$pair->a('SET ROLE writer; SET search_path = "$user", missing, w, public; ALTER TABLE t ADD y int DEFAULT 5');
$pair->wait_settled('what is not in the path on A is not wanted on B');
$pair->a('INSERT INTO t (id) VALUES (2); INSERT INTO of_super (id, x) VALUES (2, 2)');
$pair->wait_identical('of_super');
is($pair->b('SELECT y FROM t WHERE id = 2'), '5', 'rows go on');
$pair->finish;
done_testing();
