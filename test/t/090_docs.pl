# What the pages show is what happens: the SQL of the quick start and of the first pages, and the page of functions.
use strict;
use warnings;

use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Runs the blocks of a page that begin with "-- on A" or "-- on B", in their order.
sub execute_page
{
	my ($pair, $page) = @_;
	my $text = slurp_file($page);
	my %node = (A => $pair->node_a, B => $pair->node_b);
	my $url = $pair->url;
	my $blocks = 0;
	while ($text =~ /^```sql\n-- on ([AB])\n(.*?)^```/gms)
	{
		my ($side, $sql) = ($1, $2);
		$sql =~ s{http://central\.example:7075}{$url}g;
		my ($status, $out, $err) = $node{$side}->psql('postgres', $sql, on_error_stop => 1);
		is($status, 0, sprintf '%s, block %d', $page, ++$blocks) or diag("$sql\n$err");
		unlike($err, qr/WARNING/, 'without a warning');
	}
	ok($blocks > 0, "$page has blocks");
	return;
}

sub follows
{
	my ($pair, $page) = @_;
	$pair->a("INSERT INTO customer VALUES (100, 'later')");
	$pair->wait_identical('customer', { name => "$page: B follows" });
	OneReplTest::poll_ok($_, 'SELECT bool_and(state = $$in step$$) FROM onerepl_status()', "$page: in step on " . $_->name) for $pair->nodes;
	$pair->verify_equal('customer');
	return;
}

my $pair = OneReplTest->new(links => 0);
$_->safe_psql('postgres', 'DROP EXTENSION onerepl; CREATE TABLE customer (id bigint PRIMARY KEY, name text)') for $pair->nodes;
$pair->a("INSERT INTO customer VALUES (1, 'Ada')");
execute_page($pair, 'README.md');
follows($pair, 'README.md');

$_->safe_psql('postgres', 'DROP EXTENSION onerepl; DROP TABLE customer') for $pair->nodes;
execute_page($pair, 'docs/first-copy.md');
follows($pair, 'docs/first-copy.md');
execute_page($pair, 'docs/looking.md');

# A refresh or a verification of a table that has one already is refused: each block waits for the one before it.
my $text = slurp_file('docs/refresh.md');
my $blocks = 0;
while ($text =~ /^```sql\n-- on A\n(.*?)^```/gms)
{
	OneReplTest::poll_ok($pair->node_a, q{SELECT count(*) = 0 FROM onerepl.refresh WHERE state NOT IN ('done', 'cancelled', 'failed')}, 'the one before is through');
	is(($pair->node_a->psql('postgres', $1, on_error_stop => 1))[0], 0, sprintf 'docs/refresh.md, block %d', ++$blocks);
}
OneReplTest::poll_ok($pair->node_b, 'SELECT bool_and(state = $$in step$$) FROM onerepl_status()', 'all are through, and B is in step');
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'without differences');

my ($status, $page) = $pair->node_a->psql('postgres', slurp_file('test/docs/functions_page.sql'));
is("$page\n", slurp_file('docs/functions.md'), 'docs/functions.md is up to date; else call make docs');

$pair->finish;
done_testing();
