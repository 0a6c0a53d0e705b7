# Bytes on the wire, both ways, for a change of the update backlog; onerepl's and built-in logical replication's.
# Target: at most a third.

# bytes_of PEER FILE: appends bytes/change of each round to FILE. In a process of its own.
bytes_of() {
	local r first
	case $1 in
	onerepl) http_url=http://127.0.0.1:$relay_port target=${ONEREPL_PORT:-65403} ;;
	builtin) dsn_a="host=127.0.0.1 port=$relay_port user=postgres dbname=bench" target=$port_a ;;
	esac
	begin_peer "$1"
	start_relay "$target" 0
	peer_teardown() { stop_relay; }
	peer_setup
	link_start
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		first=$((r * 1000000))
		insert_backlog $first 100
		mark && await_mark
		link_stop
		update_backlog $first 100000 "$backlog_updates"
		before=$(relayed_bytes)
		timed_catch_up
		result "wire" "$r" "$(calc "($(relayed_bytes) - $before) / $backlog_updates")" B/change
	done
}

measure() {
	local each
	for each in onerepl builtin; do
		(bytes_of $each) || return 1
	done
}
