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

# The statements of a page's examples that are set off by four blanks, and begin with "A:" or "B:" or go on with blanks: [ side, statement ] ...
sub examples
{
	my ($page) = @_;
	my (@examples, $side);
	for my $line (split /\n/, slurp_file($page))
	{
		$line =~ s/ +-- .*//;
		$side = undef if $line !~ /^ {4}/;
		$side = $1 if $line =~ s/^ {4,}([AB]):  //;
		next unless $side;
		push @examples, [ $side, '' ] if !@examples || $examples[-1][1] =~ /;\s*$/;
		$examples[-1][1] .= "$line\n";
	}
	return @examples;
}

# Executes those whose text fits the pattern.
sub execute_examples
{
	my ($pair, $page, $pattern) = @_;
	my %node = (A => $pair->node_a, B => $pair->node_b);
	my @examples = grep { $_->[1] =~ $pattern } examples($page);
	ok(@examples > 0, "$page has examples");
	for my $example (@examples)
	{
		$pair->poll_a(q{SELECT count(*) = 0 FROM onerepl.refresh WHERE state NOT IN ('done', 'cancelled', 'failed')}, 'no copy is under way')
			if $example->[1] =~ /set_filter/;
		my ($status, $out, $err) = $node{ $example->[0] }->psql('postgres', $example->[1], on_error_stop => 1);
		is($status, 0, "$page: $example->[1]") or diag($err);
	}
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
	$pair->poll_a(q{SELECT count(*) = 0 FROM onerepl.refresh WHERE state NOT IN ('done', 'cancelled', 'failed')}, 'the one before is through');
	is(($pair->node_a->psql('postgres', $1, on_error_stop => 1))[0], 0, sprintf 'docs/refresh.md, block %d', ++$blocks);
}
$pair->poll_b('SELECT bool_and(state = $$in step$$) FROM onerepl_status()', 'all are through, and B is in step');
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'without differences');

# --- the tasks
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', <<'SQL');
CREATE ROLE clerk; CREATE ROLE sales; CREATE ROLE owner_of_orders; GRANT ALL ON SCHEMA public TO clerk, owner_of_orders;
CREATE TABLE orders (id bigserial PRIMARY KEY, customer bigint);
ALTER TABLE orders OWNER TO clerk;
CREATE SEQUENCE invoice_number;
SQL
}
$pair->b('CREATE TABLE all_orders (branch text, id bigint, customer bigint, PRIMARY KEY (branch, id)); ALTER TABLE customer ADD region text');
$pair->a('ALTER TABLE customer ADD region text');
$pair->track('orders');
execute_examples($pair, 'docs/schema-changes.md', qr/set_ddl|execute_ddl/);
execute_examples($pair, 'docs/sequences.md', qr/add_sequence/);
execute_examples($pair, 'docs/first-copy.md', qr/add_schema/);
execute_examples($pair, 'docs/filters.md', qr/set_filter/);
$pair->b("SELECT onerepl_allow('branch', '{public.invoice_number}')");
$pair->a("INSERT INTO orders (customer) SELECT nextval('invoice_number') FROM generate_series(1, 10)");
OneReplTest::poll_ok($_, 'SELECT bool_and(state = $$in step$$) FROM onerepl_status()', 'in step on ' . $_->name) for $pair->nodes;
is($pair->b("SELECT count(*) FROM pg_indexes WHERE tablename = 'orders'"), '2', 'B has the index, too');
$pair->verify_equal('customer', 'orders');
execute_examples($pair, 'docs/sequences.md', qr/promote\('branch'\)/);
is($pair->b("INSERT INTO orders (customer) VALUES (nextval('invoice_number')) RETURNING id > 10, customer > 10"), 't|t', 'the promoted one gives fresh values');
$pair->poll_a('SELECT state FROM onerepl_status()', 'A hears of it', wanted => 'stopped: the central was promoted');
execute_examples($pair, 'docs/filters.md', qr/set_target/);
execute_examples($pair, 'docs/uninstall.md', qr/remove/);
$_->safe_psql('postgres', 'DROP EXTENSION onerepl') for $pair->nodes;
is($_->safe_psql('postgres', "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!onerepl%'"), '0', 'nothing is left on ' . $_->name) for $pair->nodes;
$pair->a('CREATE EXTENSION onerepl');

# --- the page of functions
my ($status, $page) = $pair->node_a->psql('postgres', slurp_file('test/docs/functions_page.sql'));
is("$page\n", slurp_file('docs/functions.md'), 'docs/functions.md is up to date; else call make docs');

$pair->finish;
done_testing();
