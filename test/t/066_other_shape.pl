# P21: keys that a refresh or a verification has remembered mean nothing once the table has another key, filter or target. It begins
# anew, and the journal says so.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my @tables = qw(swapped grown verified ranged filtered moved);
my $pair = OneReplTest->new(track => \@tables, schema => join '', map { <<"SQL" } @tables);
CREATE TABLE $_ (a int PRIMARY KEY, b int NOT NULL UNIQUE, c int NOT NULL DEFAULT 0);
INSERT INTO $_ SELECT n, 1001 - n FROM generate_series(1, 1000) AS n;
SQL
OneReplTest::apply_statements($pair->node_b);
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'a > 100', refresh => NULL)");

# Calls a function for a table in chunks of 100, and stops it between the fourth and the last of them.
sub begin
{
	my ($table, $call) = @_;
	$pair->a($call);
	$pair->poll_a("SELECT chunks >= 4 FROM onerepl.refresh WHERE name = 'public.$table' ORDER BY id DESC LIMIT 1", "$table: four chunks");
	$pair->a("SELECT onerepl_refresh_pause('hq', '$table')");
	is($pair->a("SELECT state FROM onerepl.refresh WHERE name = 'public.$table' ORDER BY id DESC LIMIT 1"), 'paused', "$table: it waits midway");
	return;
}

sub resume
{
	my $table = shift;
	$pair->a("SELECT onerepl_refresh_resume('hq', '$table')");
	$pair->poll_a(<<"SQL", "$table: done") or $pair->show_state($table);
SELECT count(*) = 0 FROM onerepl.refresh WHERE name = 'public.$table' AND state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')
SQL
	return;
}

sub journal
{
	my ($table, $like) = @_;
	return OneReplTest::journal_count($pair->node_a, rule => 'III', like => "refresh of table public.$table $like");
}

# --- another column is the key, whose order is the other way round: what is left behind b = 400 is what was copied
my $slow = 'chunk_rows => 100, rows_per_second => 500';
begin('swapped', "SELECT onerepl_refresh('hq', 'swapped', $slow)");
$pair->a('ALTER TABLE swapped DROP CONSTRAINT swapped_pkey, ADD PRIMARY KEY (b)');
resume('swapped');
is($pair->b('SELECT count(*) FROM swapped'), '1000', 'swapped: all rows are there');
is($pair->b("SELECT state FROM onerepl.refresh_progress WHERE relation = 'public.swapped'"), 'done', 'and it is complete');
is(journal('swapped', 'begins anew: the table has got another key'), '1', 'and the journal tells');

# --- the key grows: the remembered one is too short
begin('grown', "SELECT onerepl_refresh('hq', 'grown', 'repair', $slow)");
$pair->a('ALTER TABLE grown DROP CONSTRAINT grown_pkey, ADD PRIMARY KEY (a, b)');
$pair->a('UPDATE grown SET c = 1 WHERE a % 7 = 0; DELETE FROM grown WHERE a % 11 = 0; INSERT INTO grown VALUES (-5, 2000)');
resume('grown');
is(journal('grown', 'begins anew: the table has got another key'), '1', 'grown: the journal tells');

# --- the same column, in another order: under that of the locale, a comes before B
$_->safe_psql('postgres', q(CREATE TABLE collated (k text COLLATE "C" PRIMARY KEY); INSERT INTO collated SELECT x || to_char(n, '0000') FROM generate_series(1, 500) AS n, unnest('{B,a}'::text[]) AS x)) for $pair->nodes;
$pair->track('collated');
OneReplTest::apply_statements($pair->node_b);
for my $method ('empty', 'repair')
{
	$pair->b('SET onerepl.allow_writes = on; DELETE FROM collated WHERE k ~ \'77\'');
	begin('collated', "SELECT onerepl_refresh('hq', 'collated', '$method', $slow)");
	$pair->a($method eq 'empty' ? 'ALTER TABLE collated ALTER k TYPE text COLLATE "und-x-icu"' : 'ALTER TABLE collated ALTER k TYPE text COLLATE "C"');
	resume('collated');
	is($pair->b('SELECT count(*) FROM collated'), '1000', "collated, $method: all rows are there");
	is($pair->b("SELECT state FROM onerepl.refresh_progress WHERE relation = 'public.collated'"), 'done', 'and it is complete');
}
is(journal('collated', 'begins anew: the table has got another key'), '2', 'and the journal tells');

# --- a verification: the rows of A that B has not are found whichever key they were behind
$pair->b('SET onerepl.allow_writes = on; DELETE FROM verified WHERE a IN (950, 40)');
begin('verified', "SELECT onerepl_verify('hq', 'verified', $slow)");
$pair->a('ALTER TABLE verified DROP CONSTRAINT verified_pkey, ADD PRIMARY KEY (b)');
resume('verified');
$pair->poll_b("SELECT complete FROM onerepl.verified WHERE relation = 'verified'::regclass", 'verified: complete');
is($pair->b("SELECT sum(rows_remote - rows_here) FROM onerepl.differences WHERE relation = 'public.verified'"), '2', 'both rows that differ were found');
$pair->a("SELECT onerepl_refresh('hq', 'verified', 'repair')");
resume('verified');

# --- a range of keys means nothing under another key: it fails, and an update that is not whole meanwhile is no failure at B
begin('ranged', "SELECT onerepl_refresh('hq', 'ranged', 'repair', $slow, key_from => '{10}', key_to => '{990}')");
$pair->a("ALTER TABLE ranged DROP CONSTRAINT ranged_pkey, ALTER a TYPE text USING 'x' || a, ADD PRIMARY KEY (a)");
$pair->a('UPDATE ranged SET c = 2 WHERE b > 800');
resume('ranged');
is($pair->a("SELECT state || ': ' || error FROM onerepl.refresh WHERE name = 'public.ranged'"),
	'failed: the table has got another key, key_from and key_to are of the one before', 'ranged: failed');
is(OneReplTest::journal_count($pair->node_a, level => 'critical', like => 'refresh of table public.ranged failed'), '1', 'and the journal tells');
$pair->a("SELECT onerepl_refresh('hq', 'ranged', 'repair')");
resume('ranged');

# --- another filter: rows that the old one kept out are not behind the last key any more
begin('filtered', "SELECT onerepl_refresh('hq', 'filtered', $slow)");
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'a > 50', refresh => NULL)");
resume('filtered');
is($pair->b('SELECT count(*) FROM filtered'), '950', 'filtered: the rows of the new filter');
is(journal('filtered', 'begins anew: the table has got another filter'), '1', 'and the journal tells');

# --- another target at B: the end of a copy does not make a table complete
begin('moved', "SELECT onerepl_refresh('hq', 'moved', $slow)");
$pair->wait_settled('moved');
$pair->b("CREATE TABLE moved_here (LIKE moved INCLUDING ALL); SELECT onerepl_set_target('branch', 'public', 'moved', 'public', 'moved_here')");
resume('moved');
is($pair->b("SELECT state FROM onerepl.refresh_progress WHERE relation = 'public.moved_here'"), 'incomplete', 'moved: known to be incomplete');
$pair->a("SELECT onerepl_refresh('hq', 'moved')");
resume('moved');
is($pair->b("SELECT state FROM onerepl.refresh_progress WHERE relation = 'public.moved_here'"), 'done', 'and complete after another refresh');
is($pair->b('SELECT count(*) FROM moved_here'), '1000', 'with all rows');

# --- a filter whose function is gone stands in nobody's way, and least of all in its repair's
$pair->a('CREATE FUNCTION wanted(int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$SELECT $1 > 60$$');
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'public.wanted(a)', refresh => NULL)");
$pair->a('DROP FUNCTION wanted');
$pair->a("SELECT onerepl_add_table('filtered')");
$pair->a('ALTER TABLE filtered ADD d int');
$pair->a('INSERT INTO filtered VALUES (3000, 3000)');
my ($refused) = OneReplTest::fails($pair->node_a, 'ALTER TABLE filtered DROP a CASCADE');
is($refused, '2BP01', 'but its column stays');
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'a > 60')");
resume('filtered');
is($pair->b('SELECT count(*) FROM filtered'), '941', 'filtered: repaired');

# --- one that works still, but means something else: by another collation, which rewrites nothing, a comes before B
$_->safe_psql('postgres', q(CREATE TABLE meaning (a int PRIMARY KEY, f text COLLATE "C"); INSERT INTO meaning VALUES (1, 'a'), (2, 'A'), (3, 'C'))) for $pair->nodes;
$pair->track('meaning');
OneReplTest::apply_statements($pair->node_b);
$pair->a(q(SELECT onerepl_set_filter('hq', 'meaning', 'f > ''B''')));
resume('meaning');
is($pair->b("SELECT string_agg(f, ' ' ORDER BY a) FROM meaning"), 'a C', 'meaning: the filter holds');
$pair->a('ALTER TABLE meaning ADD g int');
my $problems = "SELECT onerepl.self_check(); SELECT string_agg(kind, ',') FROM onerepl.problem WHERE relation = 'meaning'::regclass";
is($pair->a($problems) =~ s/.*\n//r, '', 'another column means nothing to it');
$pair->a('ALTER TABLE meaning ALTER f TYPE text COLLATE "und-x-icu"');
is($pair->a($problems) =~ s/.*\n//r, 'rewritten', 'another collation of its column is a problem');
$pair->a("SELECT onerepl_refresh('hq', 'meaning', 'repair'), onerepl_add_table('meaning')");
resume('meaning');
is($pair->b("SELECT string_agg(f, ' ' ORDER BY a) FROM meaning"), 'C', 'until the table was made right');
is($pair->a($problems) =~ s/.*\n//r, '', 'and then it is over');

# --- one whose column an inheritance parent would take along
$pair->a('CREATE TABLE parent (a int, f int); CREATE TABLE child (PRIMARY KEY (a)) INHERITS (parent)');
$pair->b('CREATE TABLE child (a int PRIMARY KEY, f int)');
$pair->track('child');
$pair->a("SELECT onerepl_set_filter('hq', 'child', 'f > 0', refresh => NULL)");
($refused) = OneReplTest::fails($pair->node_a, 'ALTER TABLE parent DROP f');
is($refused, '2BP01', 'child: its column stays, too');
$pair->a('SET event_triggers = off; ALTER TABLE parent DROP f') if $pair->a("SELECT current_setting('server_version_num')::int") >= 170000;
$pair->a("SELECT onerepl_set_filter('hq', 'child', 'a > 0', refresh => NULL); INSERT INTO child (a) VALUES (1), (-1)");
$pair->wait_settled('child');
is($pair->b('SELECT string_agg(a::text, chr(44)) FROM child'), '1', 'child: the new filter holds');

# --- virtual generated columns are not in the rows that are looked at. Before 18 there are none: the catalogue is made to tell of one.
my $is_18 = $pair->a("SELECT current_setting('server_version_num')::int") >= 180000;
$pair->a('CREATE TABLE virtual (a int PRIMARY KEY, b int, c int' . ($is_18 ? ' GENERATED ALWAYS AS (a + 1) VIRTUAL' : '') . ')');
$pair->b('CREATE TABLE virtual (a int PRIMARY KEY, b int, c int)') if !$is_18;
$pair->track('virtual');
my $made = $is_18 ? '' : "UPDATE pg_attribute SET attgenerated = 'v' WHERE attrelid = 'virtual'::regclass AND attname = 'c';";
for my $choice ("'c > 1'", "'b > 0 AND c IS NULL'", "NULL, '{c}'")
{
	($refused) = OneReplTest::fails($pair->node_a, "SET allow_system_table_mods = on; BEGIN; $made SELECT onerepl_set_filter('hq', 'virtual', $choice)");
	is($refused, '0A000', "a filter of a virtual column is refused: $choice");
}
$pair->a("SELECT onerepl_set_filter('hq', 'virtual', 'b > 0', '{b}', refresh => NULL)");

my @equal = qw(swapped grown verified ranged collated);
$pair->wait_settled;
$pair->wait_identical(@equal);
$pair->verify_equal(@equal, qw(filtered child virtual meaning), [ 'moved', 'moved_here' ]);
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');
$pair->finish;
done_testing();
