# Values of every built-in type and of types made from them, byte by byte, whatever the settings of the writing session and of
# both servers; types of extensions, whose OIDs differ; databases of different encodings.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Locales in which money looks otherwise, where they can be made.
$ENV{LOCPATH} = PostgreSQL::Test::Utils::tempdir();
my ($german, $japanese) = map {
	system("localedef -i $_ -f UTF-8 $ENV{LOCPATH}/$_.UTF-8 >/dev/null 2>&1") == 0 ? "$_.UTF-8" : 'C'
} 'de_DE', 'ja_JP';
note "lc_monetary: $german, $japanese";

# What a value looks like in a client must not matter. Nothing here is the same on both sides, nor as apply wants it.
my $pair = OneReplTest->new(
	conf_a => <<"CONF", conf_b => <<"CONF", schema => 'CREATE EXTENSION citext; CREATE EXTENSION hstore');
timezone = 'Asia/Kathmandu'
datestyle = 'SQL, DMY'
intervalstyle = 'iso_8601'
extra_float_digits = -15
bytea_output = 'escape'
xmloption = 'document'
array_nulls = off
lc_monetary = '$german'
quote_all_identifiers = on
CONF
timezone = 'America/St_Johns'
datestyle = 'German, DMY'
intervalstyle = 'sql_standard'
extra_float_digits = -10
bytea_output = 'escape'
xmloption = 'document'
array_nulls = off
lc_monetary = '$japanese'
default_text_search_config = 'pg_catalog.german'
CONF

# Sessions that write, each with settings of its own.
my @writers = (
	"SET datestyle = 'ISO, YMD'; SET timezone = 'UTC'; SET extra_float_digits = 1;",
	"SET datestyle = 'German'; SET timezone = 'Pacific/Apia'; SET intervalstyle = 'sql_standard'; SET extra_float_digits = -15;",
	"SET datestyle = 'Postgres, MDY'; SET timezone = '-11:59'; SET intervalstyle = 'postgres_verbose'; SET search_path = '';
	 SET bytea_output = 'escape'; SET client_encoding = 'LATIN1'; SET lc_monetary = '$japanese';",
);
my $reader = <<'SQL';
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET extra_float_digits = 3; SET bytea_output = 'hex';
SET array_nulls = on; SET xmloption = 'content'; SET quote_all_identifiers = off; SET lc_monetary = 'C';
SQL

# ---------------------------------------------------------------- the cases
# Lines of type and expression, at the end of this file.
my %cases;
while (my $line = <DATA>)
{
	my ($type, $value) = $line =~ /^(.*?)\s\s+(.*)$/ or die $line;
	push @{ $cases{$type} }, $value;
}

# The same types on both sides, but with other OIDs, in another order; ltree is in another schema on B.
my $user_types = <<'SQL';
CREATE SCHEMA "Odd schema";
CREATE TABLE "Odd schema"."Odd, table" ();
CREATE TYPE "Odd schema"."Odd type" AS ENUM ('', U&'h\00E4ppy, "or" not', 'NULL');
CREATE FUNCTION "Odd schema"."Odd func"(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TYPE "Odd schema".pair AS (n int, gone int, t text);
ALTER TYPE "Odd schema".pair DROP ATTRIBUTE gone;
CREATE TYPE "Odd schema".nested AS (a int, b "Odd schema".pair[], c float8);
CREATE DOMAIN "Odd schema".positive AS int CHECK (VALUE > 0);
CREATE DOMAIN "Odd schema".positives AS "Odd schema".positive[];
CREATE DOMAIN "Odd schema".of_pair AS "Odd schema".pair CHECK ((VALUE).n > 0);
CREATE TYPE "Odd schema".mood_range AS RANGE (subtype = "Odd schema"."Odd type", multirange_type_name = "Odd schema".mood_multirange);
SQL
$pair->a("$user_types CREATE EXTENSION ltree; CREATE EXTENSION cube; CREATE EXTENSION seg; CREATE EXTENSION isn;");
$pair->b(<<"SQL");
CREATE TYPE moves_oids AS ENUM ('x'); CREATE TABLE moves_more (a int, b text);
CREATE EXTENSION isn; CREATE SCHEMA elsewhere; CREATE EXTENSION seg; CREATE EXTENSION cube; CREATE EXTENSION ltree SCHEMA elsewhere;
ALTER DATABASE postgres SET search_path = public, elsewhere;
$user_types
SQL
$pair->b('DROP EXTENSION citext; CREATE EXTENSION citext; DROP EXTENSION hstore; CREATE EXTENSION hstore');
isnt($pair->b("SELECT 'citext'::regtype::oid"), $pair->a("SELECT 'citext'::regtype::oid"), 'OIDs differ');

# For each type a table: the type, an array of it, a domain, a composite, arrays of these.
my @types = sort keys %cases;
my %table = map { $types[$_] => "t$_" } 0 .. $#types;

sub definition
{
	my $type = shift;
	my $t = $table{$type};
	return <<"SQL";
CREATE DOMAIN d_$t AS $type;
CREATE TYPE c_$t AS (v $type, a $type\[], n int);
CREATE TABLE $t (id int PRIMARY KEY, v $type, a $type\[], d d_$t, da d_$t\[], c c_$t, ca c_$t\[]);
SQL
}

my $tables = join '', map { definition($_) } @types;
$_->safe_psql('postgres', "SET search_path = public, elsewhere;\n$tables") for $pair->nodes;
$pair->a('SELECT ' . join ', ', map { "onerepl_add_table('$table{$_}')" } @types);

# Rows of one type, written by writer $w: values one by one, and all of them in an array with odd lower bounds and nulls.
sub rows
{
	my ($type, $w) = @_;
	my ($t, $id, $sql) = ($table{$type}, 1000 * $w, '');
	for my $value (map { "CAST($_ AS $type)" } @{ $cases{$type} })
	{
		$id++;
		$sql .= "INSERT INTO public.$t VALUES ($id, $value, ARRAY[$value, NULL]::$type\[], $value, ARRAY[$value]::public.d_$t\[],
			ROW($value, ARRAY[NULL, $value]::$type\[], 1)::public.c_$t,
			pg_catalog.array_fill(ROW($value, NULL, 2)::public.c_$t, ARRAY[2, 1], ARRAY[-3, 0]));\n";
	}
	my $last = $id + 1;
	$sql .= "INSERT INTO public.$t (id, a) SELECT $last, pg_catalog.array_fill(v, ARRAY[1, 2, 2], ARRAY[0, -1, 5]) FROM public.$t WHERE id = $id;\n";
	$sql .= "UPDATE public.$t SET v = a[1], a = '{}' WHERE id = $id; INSERT INTO public.$t VALUES ($last + 1);\n";
	return $sql;
}

# The odd schema's types are found without a search_path, those of extensions only with one.
for my $w (0 .. $#writers)
{
	my $sql = join '', map { rows($_, $w) } @types;
	$sql =~ s/\bCAST\((.*?) AS (citext|hstore|ltree|lquery|cube|seg|isbn)\)/CAST($1 AS public.$2)/g;
	$sql =~ s/(?<![\w.])(citext|hstore|ltree|lquery|cube|seg|isbn)\[\]/public.$1\[]/g;
	my ($status, $out, $err) = $pair->node_a->psql('postgres', "SET array_nulls = on; SET xmloption = 'content';\n$writers[$w]\nBEGIN;\n$sql\nCOMMIT;",
		on_error_stop => 1);
	is($status, 0, "writer $w") or BAIL_OUT($err);
}
$pair->a("SELECT onerepl_wait('hq', '1ms')");
my $m = $pair->a('SELECT numbered_to FROM onerepl_status()');
$pair->poll_b("SELECT written_to >= $m OR EXISTS (SELECT FROM onerepl.failed) FROM onerepl_status()", 'all is written', deadline => 100);
is($pair->b("SELECT coalesce(string_agg(concat_ws(' ', relation, operation, sqlstate, message, row), E'\n'), '') FROM onerepl.failed"), '', 'nothing failed');

# Bytes of the send functions where types have the same OIDs on both sides, and the text of everything.
my %send = map { split /\|/ } split /\n/, $pair->a(<<'SQL');
SELECT a.attrelid::regclass, t.typsend::regproc FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attname = 'v' AND a.attrelid IN (SELECT relation FROM onerepl.tracked) AND t.typsend <> 0 AND t.oid < 16384
SQL
cmp_ok(scalar keys %send, '>', 60, 'types to be compared byte by byte');

sub content
{
	my ($node, $type) = @_;
	my $t      = $table{$type};
	my @bytes  = $send{$t} ? map { "coalesce(encode($_, 'hex'), 'null')" } "$send{$t}(v)", 'array_send(a)', "$send{$t}(d)", "$send{$t}((c).v)" : ();
	# What xml's output function says of its declaration is not what is there: a cast does.
	push @bytes, map { "coalesce(encode(convert_to($_, 'UTF8'), 'hex'), 'null')" } 'v::text', 'd::text', '(c).v::text',
	  'a::text[]::text', 'da::text[]::text', '(c).a::text[]::text', '(ca[-3][0]).v::text'
	  if $type eq 'xml';
	my $values = join " || ' ' || ", 'id', "coalesce(md5(t::text), '')", @bytes;
	return $node->safe_psql('postgres',
		"$reader SET search_path = public, elsewhere; SELECT id, md5($values), left(t::text, 300) FROM $t AS t ORDER BY id");
}

sub compare
{
	my $way = shift;
	for my $type (@types)
	{
		my ($on_a, $on_b) = map { content($_, $type) } $pair->nodes;
		is($on_b, $on_a, "$type $way");
	}
	return;
}
compare('by changes');

# The same rows by another way, copied by the workers; and a third one: digests of the rows' text, computed by them.
for my $way ("onerepl_refresh('hq')", "onerepl_verify('hq')")
{
	$pair->a("SELECT $way");
	$pair->poll_a("SELECT bool_and(state = 'done') FROM onerepl.refresh_progress", $way, deadline => 60)
	  or $pair->show_state;
}
compare('by a copy');
is($pair->b("SELECT coalesce(string_agg(DISTINCT relation, ' '), '') FROM onerepl.differences"), '', 'and do not differ');
$pair->finish;

# ---------------------------------------------------------------- databases of different encodings
my $texts = <<'SQL';
SET client_encoding = 'UTF8';
CREATE TYPE "größe" AS ENUM ('klein', 'groß');
CREATE TYPE "maß" AS ("größe" "größe", "länge" text);
CREATE TYPE brief AS (gone int, n int, x xml);
ALTER TYPE brief DROP ATTRIBUTE gone;
CREATE TYPE briefe AS RANGE (subtype = brief, multirange_type_name = alle_briefe);
CREATE DOMAIN blatt AS xml; CREATE DOMAIN post AS brief[];
CREATE TABLE "straße" ("schlüssel" text PRIMARY KEY, v varchar(5), c char(3), n name, j json, jb jsonb, x xml, ts tsvector, a text[],
    e "größe", m "maß"[], by bytea, xa xml[], xb blatt, xp post, xr briefe, xm alle_briefe);
SQL
my $content = q(SET client_encoding = 'UTF8'; SELECT *, x::text, xa::text[], xb::text, (xp[0]).x::text, (lower(xr)).x::text, (upper(xm)).x::text FROM "straße" ORDER BY convert_to("schlüssel", 'UTF8'));
my $rows = <<'SQL';
SET client_encoding = 'UTF8';
INSERT INTO "straße" VALUES ('ä', 'äöüßÿ', 'é', 'ñ', '{"ü": "ü"}', '{"ü": "ü"}', '<?xml version="1.0" encoding="UTF-8"?><ä>ö</ä>', 'ö:1',
    '{ä,NULL}', 'groß', ARRAY[ROW('groß', 'ü')::"maß"], '\xe4');
-- Declarations of encodings, right and wrong ones, are text like any other.
INSERT INTO "straße" ("schlüssel", x, xa, xb, xp, xr, xm)
    SELECT s, s::xml, ARRAY[s::xml, NULL, s::xml], s::xml::blatt, array_fill(b, ARRAY[1], ARRAY[0])::post, briefe(b, NULL), alle_briefe(briefe(NULL, b, '(]'))
    FROM (VALUES ('<?xml version="1.0" encoding="UTF-8"?><ä a="&lt;\">ö,"'' ()[]</ä>'), (E'<?xml version="1.0" encoding="ISO-8859-1"?>\n\n<ä/>'),
        ('<?xml version="1.1" encoding="utf-16" standalone="yes"?><ä>ö</ä>'), ('<ä/>')) AS v (s),
        LATERAL (SELECT ROW(1, s)::brief) AS l (b);
INSERT INTO "straße" VALUES ('ö'), ('weg');
UPDATE "straße" SET v = 'ß', "schlüssel" = 'ü' WHERE "schlüssel" = 'ö';
DELETE FROM "straße" WHERE "schlüssel" = 'weg';
UPDATE "straße" SET c = 'ü' WHERE "schlüssel" = 'ä';
SQL

sub encodings_pair
{
	my ($on_a, $on_b) = @_;
	my $pair = OneReplTest->new(name => lc "$on_a$on_b", schema => $texts, encoding_a => $on_a, encoding_b => $on_b);
	$pair->a(q(SET client_encoding = 'UTF8'; SELECT onerepl_add_table('"straße"')));
	$pair->a($rows);
	$pair->poll_b($content, "$on_a to $on_b", wanted => $pair->a($content)) or $pair->show_state;
	return $pair;
}

$pair = encodings_pair('LATIN1', 'UTF8');
$pair->finish;

$pair = encodings_pair('UTF8', 'LATIN1');
$pair->a("SET client_encoding = 'UTF8'; INSERT INTO \"straße\" (\"schlüssel\", a) VALUES ('x', '{5 €}')");
my $failed = q(SELECT sqlstate || ' ' || message FROM onerepl.failed);
$pair->poll_b($failed, 'a character that B lacks: the record fails, and says why',
	wanted => '22P05 character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in encoding "LATIN1"');
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
$pair->a("SET client_encoding = 'UTF8'; UPDATE \"straße\" SET a = '{5 EUR}' WHERE \"schlüssel\" = 'x'; DELETE FROM \"straße\" WHERE \"schlüssel\" = 'ä'");
$pair->poll_b(q(SELECT string_agg(message, ' ') FROM onerepl.failed), 'a skipped row is missing',
	wanted => 'row to be updated does not exist');
$pair->b("SELECT onerepl_resolve('branch', n, 'overwrite') FROM onerepl.failed");
$pair->poll_b($content, 'until it is written anew', wanted => $pair->a($content));

$pair->a(q(SET client_encoding = 'UTF8'; CREATE TABLE t (id int PRIMARY KEY, "€" int); SELECT onerepl_add_table('t'); INSERT INTO t VALUES (1, 1)));
$pair->poll_b('SELECT count(*) > 0 AND bool_and(sqlstate = $$22P05$$) FROM onerepl.failed', 'the same for names')
  or $pair->show_state;
$pair->finish;
done_testing();

__DATA__
bool                't'
bool                'f'
"char"              'a'
"char"              ''
"char"              '\377'
int2                '-32768'
int4                '-2147483648'
int8                '-9223372036854775808'
int8                '9223372036854775807'
float4              'NaN'
float4              'Infinity'
float4              '-0'
float4              '1e-45'
float4              '3.4028235e38'
float4              '0.1'
float8              'NaN'
float8              '-Infinity'
float8              '-0'
float8              '5e-324'
float8              '1.7976931348623157e308'
float8              '0.30000000000000004'
numeric             'NaN'
numeric             'Infinity'
numeric             '-Infinity'
numeric             '0.000'
numeric             '1.0'
numeric             '1.00'
numeric             '1e-1000'
numeric             '-12345678901234567890.123456789'
numeric             repeat('9', 131072)::numeric
numeric             ('-0.' || repeat('1', 16383))::numeric
numeric(10,-2)      '123456'
money               '-92233720368547758'
money               1234567.891::numeric::money
text                ''
text                E'\\ \' " \t\r\n'
text                'NULL'
text                repeat('täxt', 100000)
text                'ÿ'
varchar(3)          'äöü'
varchar(3)          'a  '
char(5)             'ä'
char(5)             ''
name                repeat('x', 63)
name                '"'
bytea               ''
bytea               '\x00ff5c27'
bytea               decode(repeat('00ff', 50000), 'hex')
date                '4713-01-01 BC'
date                '5874897-12-31'
date                'infinity'
date                '-infinity'
time                '24:00:00'
time                '00:00:00.000001'
timetz              '24:00:00-15:59'
timetz              '00:00:00+15:59:59'
timestamp           '4713-01-01 00:00:00 BC'
timestamp           '294276-12-31 23:59:59.999999'
timestamp           'infinity'
timestamptz         '4713-01-01 12:00:00 UTC BC'
timestamptz         '294276-12-31 23:59:59.999999 UTC'
timestamptz         '-infinity'
timestamptz         '2021-10-31 01:30:00 UTC'
timestamptz         '1890-01-01 00:00:00 UTC'
interval            '178000000 years'
interval            '-178000000 years'
interval            '1 mon -1 day +00:00:00.000001'
interval            '-1 year 2 mons -3 days -00:00:01.5'
interval            '0'
interval second(2)  '00:00:01.25'
bit(9)              '101010101'
varbit              ''
varbit              '1'
varbit              repeat('10', 5000)::varbit
uuid                '00000000-0000-0000-0000-000000000000'
uuid                'ffffffff-ffff-ffff-ffff-ffffffffffff'
json                '{"a" : 1,  "a": 2, "b":[]}'
json                '"\ud83d\ude00 ä"'
jsonb               '{"b": 1.10, "a": {"": null}}'
jsonb               '1e1000'
jsonb               '"ä"'
jsonpath            'strict $.a[*] ? (@.b like_regex "ä" flag "i")'
xml                 '<a b="ä"/>'
xml                 'text <b/> and more'
xml                 '<?xml version="1.0" encoding="UTF-8"?><a>ä</a>'
xml                 '<?xml version="1.0" standalone="yes"?><a/>'
xml                 E'<?xml version="1.1" encoding="ISO-8859-1"?>\n\n<a>ä</a>'
xml                 ''
xml                 '<!DOCTYPE a [<!ELEMENT a ANY>]><a/>'
tsvector            ''
tsvector            $$'a b':1A,3B 'it''s':2 ä$$
tsquery             ''
tsquery             '!a & (b:*AB | c) <2> d'
inet                '10.0.0.1/8'
inet                '::1/128'
inet                '::ffff:1.2.3.4/96'
inet                '0.0.0.0/0'
cidr                '2001:db8::/32'
macaddr             'ff:ff:ff:ff:ff:ff'
macaddr8            '08:00:2b:01:02:03:04:05'
point               '(NaN,Infinity)'
point               '(-0,0.1)'
line                '{1,-1,0.1}'
lseg                '[(0,0),(1e-300,1e300)]'
box                 '(2,2),(-1,-1)'
path                '[(0,0),(1,1)]'
path                '((0,0),(1,1))'
polygon             '((0,0),(1,1),(1,0))'
circle              '<(0,0),Infinity>'
oid                 '4294967295'
xid                 '4294967295'
xid8                '18446744073709551615'
cid                 '1'
tid                 '(4294967295,65535)'
pg_lsn              'FFFFFFFF/FFFFFFFF'
pg_snapshot         '10:20:10,14,15'
txid_snapshot       '10:20:10,14,15'
int2vector          '1 2 3'
int2vector          ''
oidvector           '1 2 3'
refcursor           'c"'
aclitem             (current_user || '=arwdDxt/' || current_user)::aclitem
int4range           'empty'
int4range           '[1,5)'
int4range           '(,5)'
int8range           '[1,9223372036854775807)'
numrange            '[1.0,1.00]'
numrange            '(NaN,)'
daterange           '[infinity,)'
daterange           '[2000-01-01,2000-01-02]'
tsrange             '["2000-01-01 00:00",infinity)'
tstzrange           '["2000-01-01 00:00 UTC",)'
int4multirange      '{}'
int4multirange      '{[1,2),(3,5]}'
int8multirange      '{(,)}'
nummultirange       '{[1.0,1.50),(3,]}'
datemultirange      '{[2000-01-01,2000-01-03)}'
tsmultirange        '{["2000-01-01 00:00",)}'
tstzmultirange      '{["2000-01-01 00:00 UTC",)}'
regclass            '"Odd schema"."Odd, table"'
regclass            'pg_class'
regclass            '4000000000'
regproc             'pg_catalog.version'
regprocedure        '"Odd schema"."Odd func"(int,text)'
regoper             'pg_catalog.||/'
regoperator         'pg_catalog.+(int4,int4)'
regtype             '"Odd schema"."Odd type"'
regtype             'timestamp with time zone'
regtype             'int4[]'
regrole             current_user::regrole
regnamespace        '"Odd schema"'
regconfig           'simple'
regdictionary       'simple'
regcollation        '"C"'
"Odd schema"."Odd type"  U&'h\00E4ppy, "or" not'
"Odd schema"."Odd type"  'NULL'
"Odd schema"."Odd type"  ''
"Odd schema".nested      ROW(1, ARRAY[ROW(2, 'a,"b\'), NULL]::"Odd schema".pair[], '-0')
"Odd schema".nested      '(,,)'
"Odd schema".positive    '1'
"Odd schema".positives   '[0:1]={1,2}'
"Odd schema".of_pair     '(1,x)'
"Odd schema".mood_range  $$["",NULL]$$
"Odd schema".mood_multirange  $${["",NULL]}$$
citext              'ÄbC'
hstore              'a=>NULL, "b c"=>"NULL", ""=>""'
ltree               'a.b_1.c'
ltree               ''
lquery              'a.*{1,2}.!b|c@'
cube                '(0,1e-300),(2,3)'
seg                 '1.0 .. 2.00'
seg                 '~6.5'
isbn                '978-0-393-04002-9'
