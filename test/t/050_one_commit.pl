# State of a link that belongs together changes in one commit (P20): rows, position, identity, start; and what memory keeps of a
# link ends with its start.
use strict;
use warnings;
use OneReplChannel;
use OneReplTest;
use OneReplWire qw(body remote_header post uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(schema => 'CREATE TABLE t (v int); CREATE TABLE k (id int PRIMARY KEY)', links => 0);
my ($secret, $address) = ($OneReplTest::secret, "127.0.0.1:$pair->{listen}");

sub settle { my $name = shift; $pair->wait_settled($name); return; }

sub count_on_b { my $sql = shift; return $pair->b("SELECT count(*) FROM $sql"); }

# Each row of t takes B its time.
sub slow
{
	my $seconds = shift;
	$pair->b("DROP TRIGGER IF EXISTS slow ON t");
	$pair->b(<<"SQL") if $seconds;
CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep($seconds); RETURN NULL; END';
CREATE TRIGGER slow AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow();
ALTER TABLE t ENABLE ALWAYS TRIGGER slow;
SQL
	return;
}

# B restarts while it writes the first body of a start.
sub restart_midway
{
	my ($wanted, $name) = @_;
	ok(OneReplTest::wait_for(sub { count_on_b('t') > $wanted }, 30), "$name: B has committed some");
	$pair->node_b->stop('fast');
	$pair->node_b->start;
	slow(0);
	$pair->wait_identical('t', { name => "$name: no row is lost or doubled by the restart" });
	settle($name);
	return;
}

# --- F1: B restarts while it writes the first body of a link
slow(0.4);
$pair->a("SELECT onerepl_add_central('hq', 'http://$address', '$secret')");
$pair->track('t', 'k');
$pair->a(join '', map { "INSERT INTO t VALUES ($_);\n" } 1 .. 12);
$pair->b("SELECT onerepl_add_remote('branch', '$secret', tables => '{*}')");
restart_midway(0, 'a new link');
slow(0.4);
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("SELECT onerepl_pause('hq'), onerepl_restart_link('hq')");
$pair->a(join '', map { "INSERT INTO t VALUES ($_);\n" } 13 .. 24);
$pair->a("SELECT onerepl_resume('hq')");
restart_midway(12, 'a link that was started anew');

# --- T9: the numbers of a new start begin lower
$pair->a('INSERT INTO k SELECT generate_series(1, 3000)');
$pair->wait_identical('k');
settle('before the numbers begin anew');
# From here on nothing is asked for twice in time (R1a): what is confirmed, B confirmed by itself.
$pair->node_a->append_conf('postgresql.conf', "onerepl.reply_timeout = '1h'");
$pair->node_a->reload;
my $before = $pair->a("SELECT written_to FROM onerepl_status()");
$pair->a("SELECT onerepl_remove_central('hq'); DROP EXTENSION onerepl CASCADE; CREATE EXTENSION onerepl");
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("SELECT onerepl_add_central('hq', 'http://$address', '$secret')");
$pair->track('t', 'k');
$pair->a('INSERT INTO k VALUES (5000)');
$pair->wait_identical('k', { name => 'a link whose numbers begin lower goes on' });
settle('and is in step');
cmp_ok($pair->a('SELECT written_to FROM onerepl_status()'), '<', $before, 'below what was confirmed before');
is($pair->b("SELECT count(*) FROM onerepl.link AS l WHERE NOT EXISTS (SELECT FROM onerepl.apply_progress AS a WHERE a.link = l.id AND a.seq = 1 AND a.written = l.start)
	AND NOT EXISTS (SELECT FROM onerepl.apply_progress AS a WHERE a.link = l.id AND a.seq > 1)"), '0', 'the first position comes with the start');

$pair->node_a->append_conf('postgresql.conf', "onerepl.reply_timeout = '1s'");
$pair->node_a->reload;

# --- S10: a recorded body of an earlier start binds or stops nothing
my $central = uuid_bytes($pair->b('SELECT onerepl.database_id()'));
my ($old, $new) = map { uuid_bytes("01234567-89ab-cdef-0123-456789abcde$_") } 0, 1;
$pair->b("SELECT onerepl_add_remote('recorded', 'a secret for recorded bodies', tables => '{*}')");
sub link_now { return $pair->b("SELECT coalesce(peer::text, 'none') || ' ' || coalesce(start::text, 'none') || ' ' || stop FROM onerepl.link WHERE name = 'recorded'"); }
sub speaks
{
	my ($remote, %options) = @_;
	my @ends = (remote => $remote, central => '', secret => 'a secret for recorded bodies');
	my $answer;
	OneReplTest::wait_for(sub { $answer = OneReplTest::http($address, post(body(@ends))); OneReplTest::status_of($answer) == 200 }, 20);    # the link is new to the receiver
	my ($nonce) = $answer =~ /\r\n\r\n.{40}(.{16})/s;
	my $recorded = body(@ends, header => remote_header(start_identity => $remote, %options), reply_to => $nonce);
	OneReplTest::http($address, post($recorded));
	return $recorded;
}
my $recorded = speaks($old);
like(link_now(), qr/^01234567.*0 0 0$/, 'a remote speaks, and is bound');
$pair->b("SELECT onerepl_restart_link('recorded')");
OneReplTest::http($address, post($recorded));
is(link_now(), 'none none 0', 'a recorded body does not bind the link that was started anew');
speaks($new);
like(link_now(), qr/^01234567.*1 0 0$/, 'the new remote is bound');
OneReplTest::http($address, post($recorded)) for 1 .. 2;
like(link_now(), qr/^01234567.*1 0 0$/, 'and a recorded body of the former one does not stop it');
speaks($old);
like(link_now(), qr/^01234567.*1 0 4$/, 'but the former one itself does');
$pair->b("SELECT onerepl_restart_link('recorded')");
my $ahead = speaks($new, start => 500, confirmed => 500, last => 500, sent => 500);
$pair->b("SELECT onerepl_restart_link('recorded')");
speaks($new);
OneReplTest::http($address, post($ahead));
like(link_now(), qr/^01234567.*1 0 0$/, 'nor does a recorded body of the same remote, of a start with higher numbers');
$pair->b("SELECT onerepl_remove_remote('recorded')");

# --- F26: what a transaction that fails has told is told by the next one
$pair->b(<<'SQL');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no journal now'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON onerepl.journal_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
ALTER TABLE onerepl.journal_entry ENABLE ALWAYS TRIGGER refuse;
SQL
my $log_at = -s $pair->node_b->logfile;
$pair->node_a->stop;
ok(OneReplTest::wait_for(sub { slurp_file($pair->node_b->logfile, $log_at) =~ /no journal now/ }, 30), 'a journal entry cannot be committed');
$pair->b('DROP TRIGGER refuse ON onerepl.journal_entry');
$pair->poll_b("SELECT count(*) > 0 FROM onerepl.journal WHERE message = 'no contact with the remote' AND at > now() - interval '1 minute'",
	'and is there once it can');
$pair->node_a->start;
$pair->a('INSERT INTO k VALUES (5001)');
$pair->wait_identical('t', 'k', { name => 'the link goes on' });
settle('in the end');
$pair->verify_equal('t', 'k');
$pair->finish;
done_testing();
