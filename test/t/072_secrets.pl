# Secrets of links: not in the server log, not stored, not in a dump, another key each way, none for two links.
use strict;
use warnings;
use OneReplTest;
use OneReplWire qw(body remote_header post uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(track => ['t'], schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t VALUES (1, 'one')");
$pair->wait_identical('t');
my ($a, $b) = $pair->nodes;

# --- the server log
my $hidden = 'a very secret text of sixteen and more';
$b->append_conf('postgresql.conf', 'log_statement = none');
$b->reload;
OneReplTest::poll_ok($b, 'SHOW log_statement', 'only errors are logged', wanted => 'none');
sub fails_on_b { my ($sql) = @_; my ($status) = $b->psql('postgres', $sql); isnt($status, 0, 'an error'); return; }
fails_on_b("PREPARE p AS SELECT onerepl_add_remote('branch', \$1); EXECUTE p('$hidden')");
fails_on_b("CREATE FUNCTION wrapped(text) RETURNS int LANGUAGE sql AS 'SELECT onerepl_add_remote(''branch'', \$1)'; SELECT wrapped('$hidden')");
$b->append_conf('postgresql.conf', "log_statement = 'all'\nlog_min_duration_statement = 0\nlog_parameter_max_length_on_error = -1");
$b->reload;
OneReplTest::poll_ok($b, 'SHOW log_statement', 'statements are logged', wanted => 'all');
fails_on_b("SELECT onerepl_add_remote('branch', '$hidden')");
fails_on_b("SELECT onerepl_add_remote('', '$hidden')");
fails_on_b("SELECT onerepl_add_central('x', 'https://central', '$hidden')");
fails_on_b("SELECT onerepl_change_link('nobody', secret => '$hidden'); SELECT 1");
fails_on_b("DO \$\$ BEGIN EXECUTE 'SELECT Onerepl_Add_Remote(''branch'', ''$hidden'')'; END \$\$");
$b->safe_psql('postgres', "SELECT onerepl_add_remote('good', '$hidden')");
$b->safe_psql('postgres', "SELECT 'the log is complete up to here'");
my $log = slurp_file($b->logfile);
like($log, qr/the log is complete up to here/, 'the log has other statements');
like($log, qr/link "branch" already exists/, 'and the error');
unlike($log, qr/\Q$hidden\E/, 'but not the secret');

# --- what is stored, and what a dump has
my $bindir = $b->config_data('--bindir');
sub dump_of { my (@with) = @_; local $ENV{PGOPTIONS} = "@with"; return (run_command([ "$bindir/pg_dump", '-p', $b->port, '-h', $b->host, 'postgres' ]))[0]; }
my $key = $b->safe_psql('postgres', "SELECT encode(k.signs_with, 'hex') FROM onerepl.link_key AS k JOIN onerepl.link AS l ON l.id = k.link WHERE l.name = 'good'");
is(length $key, 64, 'a key is stored');
is($b->safe_psql('postgres', "SELECT count(*) FROM onerepl.link AS l, onerepl.link_key AS k WHERE concat(l, k) LIKE '%very secret%'"), 0, 'the secret is not');
my $dump = dump_of();
like($dump, qr/\tgood\t/, 'a dump has the link');
unlike($dump, qr/\Q$key\E|\Q$hidden\E/, 'without a key');
like(dump_of('-c onerepl.dump_keys=on'), qr/\Q$key\E/, 'but where it was asked for');
$b->safe_psql('postgres', "DELETE FROM onerepl.link_key USING onerepl.link AS l WHERE l.id = link AND l.name = 'good'");
like($b->safe_psql('postgres', "SELECT state || ': ' || what_to_do FROM onerepl_status() WHERE link = 'good'"), qr/^no secret: .*onerepl_change_link/, 'a link without one says so');
$b->safe_psql('postgres', "SELECT onerepl_change_link('good', secret => '$hidden')");
is($b->safe_psql('postgres', "SELECT encode(k.signs_with, 'hex') FROM onerepl.link_key AS k JOIN onerepl.link AS l ON l.id = k.link WHERE l.name = 'good'"), $key, 'and has it again');

# --- one secret, one link
for ([ $a, "onerepl_add_central('second', 'http://127.0.0.1:1', '$OneReplTest::secret')" ],
	[ $a, "onerepl_add_remote('third', '$OneReplTest::secret')" ], [ $b, "onerepl_change_link('good', secret => '$OneReplTest::secret')" ])
{
	my ($status, undef, $error) = $_->[0]->psql('postgres', "SELECT $_->[1]");
	like($error, qr/another link has this secret/, "refused: $_->[1]");
}

# --- what the central signs is not taken as the remote's
my %body = (remote => uuid_bytes($a->safe_psql('postgres', 'SELECT onerepl.database_id()')), central => "\0" x 16,
	secret => $OneReplTest::secret, header => remote_header());
my $content = substr(body(%body), 0, -32);
sub status_of { return OneReplTest::status_of(OneReplTest::http("127.0.0.1:$pair->{listen}", post($_[0]))); }
is(status_of(OneReplWire::sign($content, $OneReplTest::secret, 'central')), 401, 'the other way\'s key does not fit');
is(status_of(OneReplWire::sign($content, $OneReplTest::secret, 'remote')), 200, 'the right one does');

$pair->a("INSERT INTO t VALUES (2, 'two')");
$pair->wait_identical('t');
$pair->finish;
done_testing();
