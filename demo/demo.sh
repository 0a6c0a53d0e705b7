#!/bin/bash
# Two throw-away servers, a pgbench load on the remote, a channel that misbehaves, crashes of both servers, and in the end a
# comparison of the two databases. Exit status 0 only if they are identical.
#
#   KEEP=1   leave both servers running and tell how to look at them
#   SCALE, CLIENTS, SECONDS_OF_LOAD, SEED   sizes of the load; the proxy's seed
#
# `make demo` starts it through test/lib/unprivileged, in a folder of its own.
set -euo pipefail

folder=$PWD
scale=${SCALE:-5} clients=${CLIENTS:-4} load_seconds=${SECONDS_OF_LOAD:-20} seed=${SEED:-$RANDOM}
tables='pgbench_accounts pgbench_branches pgbench_tellers pgbench_history'
faults=(--loss 0.05 --repeat 0.05 --replay 0.03 --slow 0.3 --delay 0.05:0.8 --reorder 0.05 --damage 0.05 --cut 0.02
	--strange 0.03 --down 0.002 --outage 0.5:2)

read -r port_a port_b port_http port_proxy < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(4)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in sockets])')
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres PGCONNECT_TIMEOUT=5
secret=$(od -An -N 24 -tx1 /dev/urandom | tr -d ' \n')

say() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }
a() { psql -XqAt -v ON_ERROR_STOP=1 -p "$port_a" "$@"; }
b() { psql -XqAt -v ON_ERROR_STOP=1 -p "$port_b" "$@"; }

# ------------------------------------------------------------------------------------------------------- servers

# make_server NAME PORT SETTING...
make_server() {
	local name=$1 data=$folder/$1 port=$2
	initdb -D "$data" -U postgres -A trust --no-sync --locale=C --encoding=UTF8 >"$folder/$name-initdb.log"
	cat >>"$data/postgresql.conf" <<CONF
port = $port
listen_addresses = ''
unix_socket_directories = '$folder'
shared_preload_libraries = 'onerepl'
onerepl.databases = 'postgres'
onerepl.send_interval = '500ms'
onerepl.reply_timeout = '2s'
onerepl.state_query_interval = '5s'
CONF
	shift 2
	[ $# = 0 ] || printf '%s\n' "$@" >>"$data/postgresql.conf"
	pg_ctl -D "$data" -l "$folder/$name.log" -s -w start || { tail -n 30 "$folder/$name.log"; exit 1; }
}

# crash NAME: kill -9 of the postmaster, and a new start as soon as what it left is gone.
crash() {
	local data=$folder/$1 i
	kill -KILL "$(head -n 1 "$data/postmaster.pid")"
	sleep 1
	for ((i = 0; i < 20; i++)); do
		pg_ctl -D "$data" -l "$folder/$1.log" -s -w start >"$folder/$1-start.log" 2>&1 && return
		sleep 0.5
	done
	say "$1 does not start again"
	tail -n 30 "$folder/$1.log"
	exit 1
}

end() {
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

proxy='' load='' watcher=''
# shellcheck disable=SC2317  # called by the trap
stop_all() {
	local process
	for process in $watcher $load $proxy; do
		end "$process"
	done
	[ -n "${kept:-}" ] && return
	for process in a b; do
		[ ! -e "$folder/$process/postmaster.pid" ] || pg_ctl -D "$folder/$process" -m fast -s stop || true
	done
}
trap stop_all EXIT
trap 'exit 130' INT TERM

# ------------------------------------------------------------------------------------------------------- watching

# One line about where both sides stand; a server that is down shows as such.
progress() {
	local on_a on_b
	on_a=$(a -c "SELECT format('A: M %s  S %s  %s', numbered_to, written_to, state) FROM onerepl_status()" 2>/dev/null) || on_a='A is down'
	on_b=$(b -c "SELECT format('B: S %s  %s', written_to, state) FROM onerepl_status()" 2>/dev/null) || on_b='B is down'
	if [ -t 1 ]; then
		printf '\r%(%H:%M:%S)T %-60s | %-50s' -1 "$on_a" "$on_b"
	else
		say "$on_a | $on_b"
	fi
}

watch() {
	while :; do
		progress
		sleep "$([ -t 1 ] && echo 0.5 || echo 3)"
	done
}

# A table's content as one value, the same for the same rows in any order.
fingerprint() {
	cat <<SQL
SELECT count(*) || ' rows, ' || md5(coalesce(sum(('x' || left(h, 16))::bit(64)::int8::numeric), 0)::text
    || ' ' || coalesce(sum(('x' || right(h, 16))::bit(64)::int8::numeric), 0))
  FROM (SELECT md5(t::text) AS h FROM $1 AS t) AS hashes
SQL
}

compare() {
	local table on_a on_b verdict result=0
	for table in $tables; do
		on_a=$(fingerprint "$table" | a) on_b=$(fingerprint "$table" | b)
		if [ "$on_a" = "$on_b" ]; then verdict=identical; else verdict=DIFFERENT result=1; fi
		printf '  %-18s %-10s A %s\n' "$table" "$verdict" "$on_a"
		[ $verdict = identical ] || printf '  %-29s B %s\n' '' "$on_b"
	done
	return $result
}

show() {
	local port=$1
	psql -Xq -p "$port" -P expanded=on -P pager=off -c 'SELECT * FROM onerepl_status()'
	echo 'Journal:'
	psql -Xq -p "$port" -P pager=off -c "
		SELECT level, rule, count(*), min(message) AS example, max(at)::time(0) AS newest
		  FROM onerepl.journal GROUP BY level, rule ORDER BY level, rule"
}

# ------------------------------------------------------------------------------------------------------- the load

run_load() {
	pgbench -n -p "$port_a" -c "$clients" -T "$1" postgres >>"$folder/pgbench.log" 2>&1 &
	load=$!
}

# load_with_crashes: the load for all its seconds, B and then A crash in the middle. When A crashes pgbench's sessions end, so
# that the load begins anew for the seconds that are left.
load_with_crashes() {
	local first=$((load_seconds * 2 / 3))
	run_load "$first"
	sleep $((load_seconds / 3))
	say 'kill -9 of B'
	crash b
	say 'B is back'
	sleep $((load_seconds / 6))
	say 'kill -9 of A under load'
	crash a
	say 'A is back'
	wait "$load" || true
	run_load $((load_seconds - load_seconds / 2))
	wait "$load" || { tail -n 5 "$folder/pgbench.log"; return 1; }
	load=
}

# ------------------------------------------------------------------------------------------------------- all of it

say "making two servers in $folder, pgbench scale $scale"
make_server a "$port_a"
make_server b "$port_b" "onerepl.listen = '127.0.0.1:$port_http'"
pgbench -i -q -p "$port_a" -s "$scale" postgres >"$folder/pgbench.log" 2>&1
a -c 'ALTER TABLE pgbench_history ADD id bigserial PRIMARY KEY'
pg_dump -p "$port_a" | b >"$folder/copy.log"
for port in "$port_a" "$port_b"; do
	psql -Xq -p "$port" -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION onerepl'
done

say "the channel between them misbehaves: ${faults[*]}, seed $seed"
python3 test/proxy.py --listen "127.0.0.1:$port_proxy" --target "127.0.0.1:$port_http" --seed "$seed" "${faults[@]}" \
	>"$folder/proxy.log" 2>&1 &
proxy=$!
b -c "SELECT onerepl_add_remote('branch', '$secret', tables => '{public.*}')" >/dev/null
a -c "SELECT onerepl_add_central('hq', 'http://127.0.0.1:$port_proxy', '$secret')" \
	-c "SELECT onerepl_add_schema('public')" >/dev/null

say "$clients clients change A for $load_seconds s"
watch &
watcher=$!
load_with_crashes
say 'the load has ended; waiting until B has everything'
waited=$(a -c "SELECT onerepl_wait('hq', '180 s')")
end "$watcher"
watcher=
progress
echo

echo
echo '==== A, the remote'
show "$port_a"
echo '==== B, the central'
show "$port_b"
echo '==== What the proxy did to the requests'
end "$proxy"
proxy=
cat "$folder/proxy.log"
echo
echo '==== The tables'
status=0
compare || status=1
[ "$waited" = t ] || { echo 'B had not confirmed everything in time'; status=1; }
if [ $status = 0 ]; then echo 'A and B are identical.'; else echo 'A and B are NOT identical.'; fi

if [ -n "${KEEP:-}" ]; then
	kept=yes
	a -c "UPDATE onerepl.link SET url = 'http://127.0.0.1:$port_http'"
	cat <<TEXT

Both servers are left running, linked directly; onerepl_status() and the views of schema onerepl are worth a look.
  A:    psql -h $folder -p $port_a -U postgres
  B:    psql -h $folder -p $port_b -U postgres
  stop: for s in a b; do $PG_BINDIR/pg_ctl -D $folder/\$s stop; done    (as the user who runs them)
TEXT
fi
exit $status
