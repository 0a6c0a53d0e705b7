# 50 remotes (databases of one server) that send to one central at once, divided by one remote that sends as much. Target: at
# least 0.8, and no remote waits more than 5 times as long as another.

remotes=${PEERS_REMOTES:-50}
per_remote=${PEERS_REMOTE_TX:-80}	# transactions of 1000 rows: several bodies, or whoever comes first is done at once
secret='a secret of the benchmark'

all_names() { seq -f 'r%.0f' 1 "$remotes"; }
each_remote() {	# COMMAND: with $1 the database
	local db
	for db in $(all_names); do "$@" "$db"; done
}

extra_conf() {
	[ "$1" = a ] || return 0
	echo "onerepl.databases = 'bench,$(all_names | paste -sd,)'"
	echo 'max_worker_processes = 100'
	echo 'max_connections = 300'
}

create_remote() {
	createdb -p "$port_a" "$1"
	sql "$port_a" "$1" -c 'CREATE EXTENSION onerepl' -c 'CREATE TABLE t (id bigint PRIMARY KEY, a int, b text, c timestamptz)' \
		-c 'CREATE TABLE mark (id bigint PRIMARY KEY)'
	b -c "SELECT onerepl_add_remote('$1', '$secret $1', tables => '{public.t,public.mark}'), onerepl_set_target('$1', 'public', 't', name => 't'), onerepl_set_target('$1', 'public', 'mark', name => 'mark')" >>"$dir/setup.log"
	sql "$port_a" "$1" -c "SELECT onerepl_add_central('hq', '$http_url', '$secret $1')" \
		-c "SELECT onerepl_add_table('t'), onerepl_add_table('mark'), onerepl_pause('hq')" >>"$dir/setup.log"
}
# backlog DATABASE FIRST TRANSACTIONS MARK
backlog() {
	sql "$port_a" "$1" -c "DO \$\$ BEGIN
		FOR i IN 0 .. $3 - 1 LOOP
			INSERT INTO t SELECT $2 + i * 1000 + g, g, repeat(md5(g::text), 2)::varchar(40), now()
				FROM generate_series(1, 1000) g;
			COMMIT;
		END LOOP;
		INSERT INTO mark VALUES ($4);
	END \$\$"
}
# A session that waits for its command in a pipe: so that all can begin at one moment.
open_session() {
	mkfifo "$dir/session.$1"
	sql "$port_a" "$1" <"$dir/session.$1" >>"$dir/setup.log" &
	resumes+=($!)
	exec {session}>"$dir/session.$1"
	sessions+=("$session")
	echo "SELECT 'ready';" >&"$session"
}
resume_all() {
	local session
	for session in "${sessions[@]}"; do echo "SELECT onerepl_resume('hq'); \\q" >&"$session"; done
	for session in "${sessions[@]}"; do exec {session}>&-; done
	wait "${resumes[@]}"
	each_remote close_session
	sessions=() resumes=()
}
close_session() { rm "$dir/session.$1"; }
pause() { sql "$port_a" "$1" -c "SELECT onerepl_pause('hq')" >>"$dir/setup.log"; }

# arrivals FIRST LAST: waits for the marks of that range, and gives for each when it was seen, seconds after now.
arrivals() {
	b -c "CREATE TEMP TABLE arrival (id bigint, s float8)" -c "DO \$\$ DECLARE start timestamptz := clock_timestamp(); BEGIN
		FOR i IN 1 .. $deadline * 50 LOOP
			INSERT INTO arrival SELECT m.id, extract(epoch FROM clock_timestamp() - start) FROM mark AS m
				WHERE m.id BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM arrival AS a WHERE a.id = m.id);
			IF (SELECT count(*) FROM arrival) > $2 - $1 THEN RETURN; END IF;
			COMMIT;
			PERFORM pg_sleep(0.02);
		END LOOP;
		RAISE 'not all marks have arrived';
	END \$\$" -c 'SELECT s FROM arrival ORDER BY s'
}

measure() {
	local r k db base seen one all
	begin_peer onerepl
	peer_setup
	each_remote create_remote
	link_start
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		base=$((r * 1000000000))
		link_stop
		backlog bench $base $((per_remote * remotes)) $base
		a -c CHECKPOINT && b -c CHECKPOINT
		link_start
		one=$(arrivals $base $base)

		k=0
		for db in $(all_names); do
			pause "$db"
			backlog "$db" $((base + ++k * 10000000)) "$per_remote" $((base + k))
		done
		a -c CHECKPOINT && b -c CHECKPOINT
		each_remote open_session
		arrivals $((base + 1)) $((base + remotes)) >"$dir/arrivals" &
		seen=$!
		resume_all
		wait $seen
		all=$(tail -1 "$dir/arrivals")
		result remotes_1 "$r" "$(calc "$remotes * $per_remote * 1000 / $one")" changes/s
		result "remotes_$remotes" "$r" "$(calc "$remotes * $per_remote * 1000 / $all")" changes/s
		result remotes_ratio "$r" "$(calc "$one / $all")" x
		result remotes_slowest_to_fastest "$r" "$(calc "$all / $(head -1 "$dir/arrivals")")" x
	done
}
