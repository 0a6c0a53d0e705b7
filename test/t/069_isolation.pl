# Two remotes at one central: neither reaches what is the other's, nor a sequence that is nobody's of it (P18).
use strict;
use warnings;

use lib 'test/lib';
use OneReplRemote;
use OneReplTest;
use Test::More;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $b = OneReplTest::start_node('b', 0, "onerepl.listen = '127.0.0.1:$port'");
my @secrets = ('the first secret, long enough', 'the second secret, long enough');

sub b { return $b->safe_psql('postgres', shift); }

b(<<'SQL');
CREATE EXTENSION onerepl;
CREATE SCHEMA branch_17;
CREATE SCHEMA private;
CREATE TABLE all_orders (branch text, id int, v text, PRIMARY KEY (branch, id)) PARTITION BY LIST (branch);
CREATE TABLE of_north PARTITION OF all_orders FOR VALUES IN ('north');
CREATE TABLE of_south PARTITION OF all_orders FOR VALUES IN ('south');
CREATE TABLE renamed (id int PRIMARY KEY, v text);
CREATE TABLE plain (id serial PRIMARY KEY, v text);
CREATE TABLE heir () INHERITS (plain);
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE private.t (id serial PRIMARY KEY, v text);
CREATE SEQUENCE alone;
CREATE SEQUENCE small MAXVALUE 100;
CREATE SEQUENCE private.hidden;
CREATE SEQUENCE moved;
INSERT INTO all_orders VALUES ('north', 1, 'north''s'), ('south', 1, 'south''s');
SQL
for my $i (0, 1)
{
	my $name = (qw(north south))[$i];
	b("SELECT onerepl_add_remote('$name', '$secrets[$i]', tables => '{public.*}')");
	b("SELECT onerepl_set_target('$name', 'public', 'orders', name => 'all_orders', branch_column => 'branch', branch => '$name')");
}
my ($error) = OneReplTest::fails($b, "SELECT onerepl_set_target('south', 'public', 'orders', name => 'all_orders', branch_column => 'branch', branch => 'north')");
is($error, '42710', 'two links have not the same branch');
b("SELECT onerepl_set_target('north', 'public', 'customers', name => 'renamed')");

my ($north, $south) =
  map { OneReplRemote->new(node => $b, listen => $port, link => (qw(north south))[$_], secret => $secrets[$_]) } 0, 1;
my @columns = ([ 'id', 'int4', 1 ], [ 'v', 'text' ]);
my @branch_columns = ([ 'branch', 'text', 1 ], [ 'id', 'int4', 2 ], [ 'v', 'text' ]);

# What B makes of a record; a table in front of it is described first.
sub outcome_of
{
	my ($remote, $record, $table) = @_;
	$remote->send($remote->describe($table)) if $table;
	$remote->send($record);
	return $remote->outcome;
}

sub refused_ok
{
	my ($remote, $record, $table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(outcome_of($remote, $record, $table), qr/^42501 /, $name);
	ok($remote->skip, '... and it can be skipped');
	return;
}

# --- a table for both: each by its mapping, and its own rows
my %orders = map { $_ => $_->description('public', 'orders', @columns) } $north, $south;
is(outcome_of($_, $_->insert($orders{$_}, 2, 'new'), $orders{$_}), 'written', "$_->{link} writes its rows") for $north, $south;
my $direct = $south->description('public', 'all_orders', @branch_columns);
refused_ok($south, $south->update($direct, 'north', 1, "south's now"), $direct, 'the table by its own name');
refused_ok($south, $south->truncate($direct), undef, '... also for truncate');
my $part = $south->description('public', 'of_north', @branch_columns);
refused_ok($south, $south->delete($part, 'north', 1), $part, 'a partition of it');
is(b("SELECT string_agg(concat_ws(' ', branch, id, v), ',' ORDER BY branch, id) FROM all_orders"),
	"north 1 north's,north 2 new,south 1 south's,south 2 new", 'all rows are as they were');
is(outcome_of($south, $south->truncate($orders{$south})), 'written', 'truncate through the mapping');
is(b('SELECT string_agg(branch, \',\') FROM all_orders'), 'north,north', '... reaches its own rows');

# --- the target of a mapping that is no branch's
my $renamed = $south->description('public', 'renamed', @columns);
refused_ok($south, $south->insert($renamed, 1, 'south'), $renamed, 'a table that is the target of another link\'s mapping');
my $own = $north->description('public', 'renamed', @columns);
refused_ok($north, $north->insert($own, 1, 'north'), $own, 'and of its own, but for the mapping');
my $customers = $north->description('public', 'customers', @columns);
is(outcome_of($north, $north->insert($customers, 1, 'north'), $customers), 'written', 'which leads there');

# --- a table that another link writes
my %plain = map { $_ => $_->description('public', 'plain', @columns) } $north, $south;
is(outcome_of($north, $north->insert($plain{$north}, 1, 'north'), $plain{$north}), 'written', 'the first link writes it');
refused_ok($south, $south->update($plain{$south}, 1, 'south'), $plain{$south}, 'the second one does not');
like(b("SELECT string_agg(message || detail, ' ') FROM onerepl.failed") . OneReplTest::journal_count($b, like => 'may not write table public.plain'), qr/[1-9]/, 'the journal tells why');
is(b('SELECT v FROM plain'), 'north', '... and the row is the first one\'s');
b("SELECT onerepl_set_target('south', 'public', 'plain', name => 'plain')");
is(outcome_of($south, $south->insert($plain{$south}, 2, 'south')), 'written', 'unless the administrator says so');
b('ALTER TABLE plain INHERIT parent');
my $parent = $south->description('public', 'parent', @columns);
refused_ok($south, $south->insert($parent, 1, 'south'), $parent, 'a table that another one\'s inherits from');

# --- sequences
sub sequence_ok
{
	my ($remote, $state, $name, @sequence) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(outcome_of($remote, $remote->sequences(\@sequence)), qr/^$state/, $name);
	ok($remote->skip, '... and it can be skipped') unless $state eq 'written';
	return;
}
b("SELECT onerepl_add_remote('west', 'the third secret, long enough', tables => '{public.alone,public.small,public.moved,private.t}')");
my $west = OneReplRemote->new(node => $b, listen => $port, link => 'west', secret => 'the third secret, long enough');
sequence_ok($west, 'written', 'a sequence that is named', 'public', 'alone', 7);
is(b('SELECT last_value FROM alone'), '7', '... is set');
sequence_ok($west, 'written', 'one of a column of a table that is named', 'private', 't_id_seq', 8);
is(b('SELECT last_value FROM private.t_id_seq'), '8', '... is set');
sequence_ok($west, 42501, 'one that is not named', 'private', 'hidden', 9);
sequence_ok($west, 42501, 'one of a column of a table that is not named', 'public', 'plain_id_seq', 9);
sequence_ok($west, 42501, 'one of onerepl', 'onerepl', 'journal_entry_id_seq', '9223372036854775807');
sequence_ok($west, 22003, 'one beyond its bounds', 'public', 'small', 101);
is(b('SELECT concat(h.last_value, p.last_value, s.last_value) FROM private.hidden AS h, plain_id_seq AS p, small AS s'), '111', '... none is set');
b('ALTER SEQUENCE moved OWNED BY plain.v');
sequence_ok($west, 42501, 'one that is named, but belongs to a table that is not', 'public', 'moved', 9);
sequence_ok($south, 'written', 'one of a schema with a table for several remotes', 'public', 'small', 99);
is(b('SELECT last_value FROM small'), '1', '... is not set');
b("SELECT onerepl_add_remote('east', 'the fourth secret, long enough', tables => '{public.alone}')");
my $east = OneReplRemote->new(node => $b, listen => $port, link => 'east', secret => 'the fourth secret, long enough');
sequence_ok($east, 42501, 'one that another link sets', 'public', 'alone', 99);
is(b('SELECT last_value FROM alone'), '7', '... stands where it stood');
like(b("SELECT onerepl_promote('west', force => true)"), qr/^\d+$/, 'a promotion sets those that may be set');
is(b("SELECT a.last_value || ' ' || m.last_value FROM alone AS a, moved AS m"), '7 1', '... and no other');

$b->stop('fast');
done_testing();
