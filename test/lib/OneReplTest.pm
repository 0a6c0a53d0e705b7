# A remote A and a central B on throw-away servers, with an HTTP proxy between them if wanted.
#
#   my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY)', track => ['t']);
#   $pair->a("INSERT INTO t VALUES (1)");
#   $pair->wait_identical('t');
#   $pair->finish;
package OneReplTest;

use strict;
use warnings;

use Carp;
use IO::Socket::INET;
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our $secret = 'a secret of the tests, long enough';
our $encoding = 'UTF8';    # of servers that are started
my %proxies;    # process id => 1, of all proxies that run

# Options:
#   schema   SQL run on both databases first
#   track    tables that A tracks
#   conf     lines for both postgresql.conf; conf_a, conf_b: for one
#   proxy    hash of the proxy's options (loss => 0.1, ...): the link goes through a proxy
#   streaming  1: A may have standbys and base backups
#   encoding_a, encoding_b  of the databases, UTF8 if not given
#   tables   what the link may write, as onerepl_add_remote takes it; everything if not given
#   links    0: servers and extensions only
sub new
{
	my ($class, %options) = @_;
	my $self = bless {
		listen => PostgreSQL::Test::Cluster::get_free_port(),
		name   => $options{name} // '',
		tables => $options{tables} // '{*}',
	}, $class;
	local $encoding = $options{encoding_a} // 'UTF8';
	$self->{node_a} = start_node("a$self->{name}", $options{streaming}, $options{conf}, $options{conf_a});
	$encoding = $options{encoding_b} // 'UTF8';
	$self->{node_b} = start_node("b$self->{name}", $options{streaming},
		"onerepl.listen = '127.0.0.1:$self->{listen}'", $options{conf}, $options{conf_b});
	for my $node ($self->nodes)
	{
		$node->safe_psql('postgres', $options{schema}) if $options{schema};
		$node->safe_psql('postgres', 'CREATE EXTENSION onerepl');
	}
	$self->start_proxy(%{ $options{proxy} }) if $options{proxy};
	$self->link unless defined $options{links} && !$options{links};
	$self->track(@{ $options{track} }) if $options{track};
	return $self;
}

# A server with onerepl preloaded, for the database postgres, with short waiting times.
sub start_node
{
	my ($name, $streaming, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(($streaming ? (allows_streaming => 1) : ()), extra => [ '--locale=C', "--encoding=$encoding" ]);
	$node->append_conf('postgresql.conf', $_) for (base_conf(), grep { defined } @conf);
	$node->start;
	return $node;
}

sub base_conf
{
	return <<'CONF';
shared_preload_libraries = 'onerepl'
onerepl.databases = 'postgres'
onerepl.reply_timeout = '1s'
onerepl.state_query_interval = '2s'
onerepl.send_interval = '500ms'
onerepl.refresh_share = 100
restart_after_crash = on
max_connections = 40
shared_buffers = '64MB'
max_wal_size = '1GB'
max_prepared_transactions = 10
log_statement = none
timezone = 'UTC'
CONF
}

sub nodes { my $self = shift; return ($self->{node_a}, $self->{node_b}); }
sub node_a { return $_[0]{node_a}; }
sub node_b { return $_[0]{node_b}; }

# Runs SQL on A or B; gives its output; dies when it fails.
sub a { my ($self, $sql, %options) = @_; return $self->{node_a}->safe_psql('postgres', $sql, %options); }
sub b { my ($self, $sql, %options) = @_; return $self->{node_b}->safe_psql('postgres', $sql, %options); }

# Runs SQL that must fail; gives the SQLSTATE and the message.
sub fails
{
	my ($node, $sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 1);
	return ('00000', '') if $status == 0;
	my ($state, $message) = $err =~ /(?:ERROR|FATAL):\s+([0-9A-Z]{5}):\s*(.*)/;
	return ($state // '?', $message // $err);
}

# ------------------------------------------------------------------------------------------------ links and tables

sub url
{
	my $self = shift;
	my $port = $self->{proxy} ? $self->{proxy}{listen} : $self->{listen};
	return "http://127.0.0.1:$port";
}

sub link
{
	my $self = shift;
	$self->b("SELECT onerepl_add_remote('branch', '$secret', tables => '$self->{tables}')");
	wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{listen}) }, 20)
	  or croak 'B does not listen';
	$self->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $self->url, $secret);
	return;
}

# Lets a link execute statements at a node. They never run as a superuser: what is here gets an ordinary owner, and the role
# executes what the remote's administrator gives.
sub apply_statements
{
	my ($node, $link) = @_;
	$node->safe_psql('postgres', <<'SQL');
SET client_min_messages = error;
DO $$
DECLARE statement text;
BEGIN
    IF to_regrole('clerk') IS NULL THEN
        CREATE ROLE clerk;
    END IF;
    GRANT CREATE ON DATABASE postgres TO clerk;
    FOR statement IN
        WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema|onerepl)'),
             superuser AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = 'pg_database_owner')
        SELECT format('ALTER SCHEMA %I OWNER TO clerk', nspname) FROM pg_namespace
            WHERE oid IN (SELECT * FROM ours) AND nspowner IN (SELECT * FROM superuser)
        UNION ALL
        SELECT format('ALTER %s %s OWNER TO clerk', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
            FROM pg_class AS c WHERE relnamespace IN (SELECT * FROM ours) AND relowner IN (SELECT * FROM superuser) AND relkind IN ('r', 'p', 'v', 'S')
            AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype IN ('e', 'a', 'i') AND relkind = 'S')
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO clerk', t.oid::regtype) FROM pg_type AS t
            WHERE typnamespace IN (SELECT * FROM ours) AND typowner IN (SELECT * FROM superuser)
              AND (typtype IN ('e', 'd', 'r') OR typtype = 'c' AND EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind = 'c'))
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO clerk', p.oid::regprocedure) FROM pg_proc AS p
            WHERE pronamespace IN (SELECT * FROM ours) AND proowner IN (SELECT * FROM superuser) AND prokind IN ('f', 'p')
              AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
              AND prorettype <> 'event_trigger'::regtype
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
SQL
	$node->safe_psql('postgres', sprintf "SELECT onerepl_set_ddl('%s', 'apply', 'clerk')", $link // 'branch');
	return;
}

sub track
{
	my ($self, @tables) = @_;
	$self->a("SELECT onerepl_add_table('$_'::regclass)") for @tables;
	return;
}

# ------------------------------------------------------------------------------------------------ waiting

# Calls $check until it is true, at most $deadline seconds; PATIENCE times as long on slow machines.
sub wait_for
{
	my ($check, $deadline) = @_;
	my $end = time + ($deadline // 30) * ($ENV{PATIENCE} // 1);
	while (1)
	{
		return 1 if $check->();
		return 0 if time > $end;
		sleep 0.1;
	}
}

# Runs SQL on a node that may be down: status, output, errors. psql that cannot connect may be gone before it was given the SQL.
sub ask
{
	my ($node, $sql) = @_;
	my @answer = eval { $node->psql('postgres', $sql) };
	return @answer ? @answer : (2, '', $@);
}

# Asks a node until the answer is $wanted ('t'). The node may be down meanwhile. Test with a name, as `ok`.
sub poll_ok
{
	my ($node, $sql, $name, %options) = @_;
	my $wanted = $options{wanted} // 't';
	my ($out, $err);
	my $good = wait_for(
		sub {
			(my $status, $out, $err) = ask($node, $sql);
			return $status == 0 && ($out // '') eq $wanted;
		},
		$options{deadline});
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($good, $name) or diag("$sql\nlast answer: " . ($out // '') . ($err // ''));
	return $good;
}

# The same on A or B: $pair->poll_a(SQL, name, ...).
sub poll_a { my $self = shift; local $Test::Builder::Level = $Test::Builder::Level + 1; return poll_ok($self->{node_a}, @_); }
sub poll_b { my $self = shift; local $Test::Builder::Level = $Test::Builder::Level + 1; return poll_ok($self->{node_b}, @_); }

# A table's content as one value; the same for the same rows in any order.
sub fingerprint
{
	my ($node, $table) = @_;
	my ($status, $out) = $node->psql('postgres', <<SQL);
SELECT count(*) || ' rows ' || coalesce(sum(('x' || left(h, 16))::bit(64)::int8::numeric), 0)
    || ' ' || coalesce(sum(('x' || right(h, 16))::bit(64)::int8::numeric), 0)
  FROM (SELECT md5(t::text) AS h FROM $table AS t) AS hashes
SQL
	return $status == 0 ? $out : undef;
}

sub same_content
{
	my ($self, @tables) = @_;
	for my $table (@tables)
	{
		my ($on_a, $on_b) = map { fingerprint($_, $table) } $self->nodes;
		return 0 unless defined $on_a && defined $on_b && $on_a eq $on_b;
	}
	return 1;
}

# Tests that the tables become equal in time; options: deadline (seconds), name.
sub wait_identical
{
	my ($self, @arguments) = @_;
	my %options = ref $arguments[-1] eq 'HASH' ? %{ pop @arguments } : ();
	my @tables = @arguments;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $good = wait_for(sub { $self->same_content(@tables) }, $options{deadline} // 40);
	ok($good, $options{name} // "identical: @tables") or $self->show_state(@tables);
	return $good;
}

# Tests that A knows that all is confirmed and B that it is identical.
sub wait_settled
{
	my ($self, $name, $deadline) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	poll_ok($self->{node_a}, 'SELECT bool_and(written_to = numbered_to) FROM onerepl_status()',
		($name // 'A') . ': S = M', deadline => $deadline);
	return;
}

# Tests that onerepl_verify finds these tables complete and equal. One with another name at B: [ name at A, name at B ].
sub verify_equal
{
	my ($self, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($on_a, $on_b) = map { my $side = $_; [ map { ref $_ ? $_->[$side] : $_ } @tables ] } 0, 1;
	$self->a("SELECT onerepl_verify('hq', '$_')") for @$on_a;
	poll_ok($self->{node_a}, "SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'verified');
	my $list = join ', ', map { "'$_'::regclass" } @$on_b;
	is($self->b(<<"SQL"), @tables . ' 0 0 t', 'and found equal') or $self->show_state(@$on_b);
SELECT concat_ws(' ', count(DISTINCT relation), sum(differences), sum(not_compared), bool_and(complete)) FROM onerepl.verified WHERE relation IN ($list)
SQL
	return;
}

# What a reader of a failed test wants to see.
sub show_state
{
	my ($self, @tables) = @_;
	for my $node ($self->nodes)
	{
		my ($status, $out, $err) = $node->psql('postgres', join "\n",
			'\x on', 'SELECT * FROM onerepl_status();', '\x off',
			"SELECT level, rule, message, first, last FROM onerepl.journal ORDER BY 1 DESC LIMIT 30;");
		diag('on ' . $node->name . ":\n" . ($out // '') . ($err // ''));
		diag(join "\n", map { "$_: " . (fingerprint($node, $_) // 'not readable') } @tables);
	}
	return;
}

# Number of journal entries of a node; options: level ('critical'), rule, like (of message).
sub journal_count
{
	my ($node, %options) = @_;
	my @conditions = ('true');
	push @conditions, "level::text = '$options{level}'"    if $options{level};
	push @conditions, "rule = '$options{rule}'"            if $options{rule};
	push @conditions, "message ~ '$options{like}'"         if $options{like};
	return $node->safe_psql('postgres', 'SELECT count(*) FROM onerepl.journal WHERE ' . join ' AND ', @conditions);
}

# Tests that a node's journal warns of nothing. A lost contact (R1, P12) is left out: on a busy machine it is true.
sub nothing_told
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', <<'SQL'), '', $name);
SELECT concat_ws(' ', level, rule, message) FROM onerepl.journal
WHERE level IN ('critical', 'warning') AND message !~ '^no contact' AND coalesce(rule, '') <> 'R1a'
SQL
	return;
}

# ------------------------------------------------------------------------------------------------ processes

# Process ids of workers: kind is sender, receiver or launcher.
sub workers
{
	my ($node, $kind) = @_;
	my ($status, $out) = ask($node,
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'onerepl $kind' ORDER BY 1");
	return $status == 0 ? split(/\n/, $out) : ();
}

# kill -9 of one worker of a kind; the server restarts itself afterwards. True if there was one.
sub kill_worker
{
	my ($node, $kind) = @_;
	my @pids = workers($node, $kind) or return 0;
	return kill 'KILL', $pids[ rand @pids ];
}

# Waits until a server answers again, at most 30 s.
sub wait_up
{
	my $node = shift;
	return wait_for(sub { my ($status) = ask($node, 'SELECT 1'); return $status == 0; }, 30);
}

# kill -9 of a whole server, and its new start. The processes that the postmaster leaves behind must end by themselves.
sub crash
{
	my $node = shift;
	crash_only($node);
	$node->start;
	return;
}

sub crash_only
{
	my $node = shift;
	my $postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : croak 'no postmaster';
	my @children = children_of($postmaster);
	$node->kill9;
	wait_for(sub { return !grep { kill 0, $_ } $postmaster, @children }, 20)
	  or diag('processes outlive their postmaster: ' . join ' ', grep { kill 0, $_ } @children);
	return;
}

sub children_of
{
	my $parent = shift;
	my @children;
	for my $file (glob '/proc/[0-9]*/stat')
	{
		open my $stat, '<', $file or next;
		my ($pid, $ppid) = (<$stat> // '') =~ /^(\d+) \(.*\) \S (\d+)/ or next;
		push @children, $pid if $ppid == $parent;
	}
	return @children;
}

# Anonymous memory of a process, in MB: what it has beyond shared buffers and code.
sub anonymous_memory
{
	my $pid = shift;
	open my $file, '<', "/proc/$pid/status" or return 0;
	my %values = map { /^(\w+):\s+(\d+) kB/ ? ($1 => $2) : () } <$file>;
	return ($values{RssAnon} // 0) / 1024;
}

# pgbench with the built-in load or a script, in the background: give the handle to IPC::Run::finish.
sub start_pgbench
{
	my ($node, @arguments) = @_;
	my $log = "$PostgreSQL::Test::Utils::tmp_check/log/" . $node->name . '_pgbench.log';
	return IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, @arguments, 'postgres' ],
		'<', '/dev/null', '>>', $log, '2>>', $log);
}

# ------------------------------------------------------------------------------------------------ restored servers

# A cold copy of a node's data, and its return.
sub save
{
	my $node = shift;
	$node->stop;
	my $copy = $node->basedir . '/older';
	system_or_bail('rm', '-rf', $copy);
	system_or_bail('cp', '-a', $node->data_dir, $copy);
	$node->start;
	return $copy;
}

sub restore
{
	my ($node, $copy) = @_;
	$node->stop;
	system_or_bail('rm', '-rf', $node->data_dir);
	system_or_bail('cp', '-a', $copy, $node->data_dir);
	$node->start;
	return;
}

# ------------------------------------------------------------------------------------------------ the proxy

sub start_proxy
{
	my ($self, %options) = @_;
	my ($listen, $control) = map { PostgreSQL::Test::Cluster::get_free_port() } 1 .. 2;
	my @command = ('python3', 'test/proxy.py', '--listen', "127.0.0.1:$listen",
		'--target', "127.0.0.1:$self->{listen}", '--control', "127.0.0.1:$control",
		map { ("--$_", $options{$_}) } sort keys %options);
	my $log = "$PostgreSQL::Test::Utils::tmp_check/log/proxy_$listen.log";
	my $pid = fork // croak 'fork';
	if ($pid == 0)
	{
		open STDOUT, '>', $log;
		open STDERR, '>&', \*STDOUT;
		exec @command or POSIX::_exit(1);
	}
	$proxies{$pid} = 1;
	$self->{proxy} = { listen => $listen, control => $control, pid => $pid, log => $log };
	wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $control) }, 10)
	  or croak 'the proxy does not start: ' . slurp_file($log);
	return;
}

# A command to the proxy, as tell_proxy('/set?loss=0.3'); gives its counts as JSON text.
sub tell_proxy
{
	my ($self, $command) = @_;
	return http("127.0.0.1:$self->{proxy}{control}", "GET $command HTTP/1.1\r\nHost: x\r\n\r\n");
}

# All faults off.
sub calm_proxy
{
	my $self = shift;
	$self->tell_proxy('/up');
	return $self->tell_proxy('/set?'
		  . join '&', map { "$_=0" } qw(loss repeat replay slow reorder damage cut half strange down));
}

sub stop_proxy
{
	my $self = shift;
	my $proxy = delete $self->{proxy} or return;
	kill 'TERM', $proxy->{pid};
	waitpid $proxy->{pid}, 0;
	delete $proxies{ $proxy->{pid} };
	return;
}

# ------------------------------------------------------------------------------------------------ raw HTTP

# Sends bytes to host:port and reads what comes until the end or $wait seconds without anything.
sub http
{
	my ($address, $bytes, $wait) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => $address, Timeout => 5) or return '';
	local $SIG{PIPE} = 'IGNORE';
	$socket->syswrite($bytes);
	my $answer = '';
	while (1)
	{
		my $ready = '';
		vec($ready, $socket->fileno, 1) = 1;
		last unless select $ready, undef, undef, $wait // 5;
		last unless $socket->sysread($answer, 65536, length $answer);
		last if answer_complete($answer);
	}
	return $answer;
}

sub answer_complete
{
	my $answer = shift;
	my $head = index $answer, "\r\n\r\n";
	return 0 if $head < 0;
	return 0 unless substr($answer, 0, $head) =~ /^content-length:\s*(\d+)/im;
	return length($answer) >= $head + 4 + $1;
}

# Status code of an answer; 0 if there is none.
sub status_of
{
	my $answer = shift;
	return $answer =~ m{^HTTP/1\.[01] (\d+)} ? $1 : 0;
}

# ------------------------------------------------------------------------------------------------ the end

sub finish
{
	my $self = shift;
	$self->stop_proxy;
	$_->stop('fast', fail_ok => 1) for $self->nodes;
	return;
}

END
{
	local $?;
	kill 'TERM', $_ for keys %proxies;
}

1;
