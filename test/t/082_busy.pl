# A receiver that writes a large transaction answers nobody meanwhile: both sides say so, for this link and for the others, and nobody calls
# it "no contact".
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY)', track => ['t'], conf_b => "onerepl.reply_timeout = '3s'");
my $other = OneReplTest::start_node('other');
my $secret = 'the secret of the other link';
$pair->b("SELECT onerepl_add_remote('second', '$secret')");
$other->safe_psql('postgres', $_) for 'CREATE EXTENSION onerepl', sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $secret;
OneReplTest::poll_ok($_, "SELECT bool_and(state = 'in step') FROM onerepl_status()", 'in step: ' . $_->name) for $pair->nodes, $other;

# Writing takes as long as the test wants.
$pair->b(<<'SQL');
CREATE TABLE held (yes bool);
INSERT INTO held VALUES (true);
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    WHILE EXISTS (SELECT FROM public.held) LOOP PERFORM pg_sleep(0.05); END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER hold AFTER INSERT ON t FOR EACH ROW WHEN (NEW.id = 5000) EXECUTE FUNCTION hold();
ALTER TABLE t ENABLE ALWAYS TRIGGER hold;
SQL
my $begun = $pair->b('SELECT clock_timestamp()');
$pair->a('INSERT INTO t SELECT n FROM generate_series(1, 10000) AS n');
$pair->poll_b("SELECT state FROM onerepl_status() WHERE link = 'branch'", 'B says what it does', wanted => 'writing 10000 records');
$pair->poll_b("SELECT state FROM onerepl_status() WHERE link = 'second'", 'and what the other link waits for',
	wanted => 'waiting for link "branch", for which 10000 records are written');
OneReplTest::poll_ok($_, 'SELECT state FROM onerepl_status()', 'A remote says that it waits: ' . $_->name, wanted => 'waiting for an answer') for $pair->node_a, $other;
my $far_beyond = "SELECT bool_and(last_contact < clock_timestamp() - interval '8 s' AND state <> 'no contact') FROM onerepl_status()";
OneReplTest::poll_ok($_, $far_beyond, 'however long it takes: ' . $_->name) for $pair->nodes, $other;

# No status between the end and the next word of the remotes says otherwise.
$pair->b('DELETE FROM held');
my %seen;
OneReplTest::wait_for(
	sub {
		my @states = split /\n/, $pair->b('SELECT state FROM onerepl_status()');
		$seen{$_}++ for @states;
		return !grep { $_ ne 'in step' } @states;
	}, 30);
ok($seen{'in step'}, 'B is in step');
ok(!$seen{'no contact'}, 'and did not call it no contact on the way') or diag(join ', ', keys %seen);
OneReplTest::poll_ok($_, "SELECT bool_and(state = 'in step') FROM onerepl_status()", 'in step again: ' . $_->name) for $pair->node_a, $other;
is($pair->b("SELECT link, at, message FROM onerepl.journal WHERE at > '$begun' AND (message ~ 'no contact' OR message ~ 'does not answer')"), '',
	'nor does the journal');
$pair->wait_identical('t');
$pair->verify_equal('t');
$pair->finish;
done_testing();
