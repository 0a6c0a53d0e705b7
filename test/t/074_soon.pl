# P22: a link is in step soon after it can be, whatever its intervals are. Here they are hours, so that nothing
# below would come in time if it waited for one of them.
use strict;
use warnings;

use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $hours = <<'CONF';
onerepl.reply_timeout = '1h'
onerepl.state_query_interval = '1h'
onerepl.send_interval = '1h'
CONF
my $pair = OneReplTest->new(links => 0, conf => $hours, schema => 'CREATE TABLE t (id int PRIMARY KEY)');

# The remote is there first: its first tries meet nobody, then a central that does not know it.
$pair->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $OneReplTest::secret);
$pair->track('t');
$pair->a('INSERT INTO t VALUES (1)');
$pair->poll_a("SELECT last_error <> '' FROM onerepl_status()", 'A met nobody');
$pair->b("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
$pair->wait_identical('t', { name => 'the first row, after set-up in the wrong order' });

# The central is away for a while.
$pair->node_b->stop('fast');
$pair->a('INSERT INTO t VALUES (2)');
$pair->poll_a("SELECT state = 'no contact' OR last_error <> '' FROM onerepl_status()",
	'A knows that B is away');
$pair->node_b->start;
$pair->wait_identical('t', { name => 'the central is back' });
$pair->wait_settled('the central is back');

# A secret that is wrong at first.
$pair->b("SELECT onerepl_change_link('branch', secret => 'another secret, long enough too')");
$pair->a('INSERT INTO t VALUES (3)');
$pair->poll_a("SELECT last_error <> '' FROM onerepl_status()", 'B refuses A');
$pair->b("SELECT onerepl_change_link('branch', secret => '$OneReplTest::secret')");
$pair->wait_identical('t', { name => 'the secret is right again' });

# The central's administrator holds the link for a while.
$pair->b("SELECT onerepl_pause('branch')");
$pair->a('INSERT INTO t VALUES (4)');
$pair->poll_a("SELECT state = 'the central is paused' FROM onerepl_status()", 'A knows that B is paused');
$pair->b("SELECT onerepl_resume('branch')");
$pair->wait_identical('t', { name => 'the central goes on' });

# A record that could not be written for a while.
$pair->b("SELECT onerepl_pause('branch')");
$pair->a('CREATE TABLE later (id int PRIMARY KEY)');
$pair->track('later');
$pair->a('INSERT INTO later VALUES (1)');
$pair->b("SELECT onerepl_resume('branch')");
$pair->poll_b("SELECT state LIKE 'failed at %' FROM onerepl_status()", 'B lacks the table');
$pair->b('CREATE TABLE later (id int PRIMARY KEY)');
$pair->b("SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->wait_identical('t', 'later', { name => 'the failed record was resolved' });
$pair->wait_settled('all is in step');

$pair->finish;
done_testing();
