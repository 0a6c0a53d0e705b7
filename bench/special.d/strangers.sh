# p99 of a link's latency while strangers hold all of the central's connections, each with a request of which a byte comes now and
# then, divided by that of the undisturbed link before. From another address than the remote's, and from the remote's own,
# which stands as it does. Target: at most 2.

strangers=${PEERS_STRANGERS:-1050}

start_strangers() {	# FROM
	rm -f "$dir/holding"
	python3 "$here/strangers.py" --target "127.0.0.1:$http_port" --source "$1" --connections "$strangers" --holding "$dir/holding" 3>&- &
	crowd=$!
	wait_for 'the strangers' ls "$dir/holding"
}
stop_strangers() {
	kill "$crowd" 2>/dev/null && wait "$crowd" || true
}

measure() {
	local r from name undisturbed attacked
	begin_peer onerepl
	peer_teardown() { stop_strangers; }
	peer_setup
	link_start
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		for from in 127.0.0.2 127.0.0.1; do
			name=strangers_elsewhere
			[ $from = 127.0.0.2 ] || name=strangers_same_address
			take_latencies
			undisturbed=$(latency_p 99)
			start_strangers $from
			take_latencies
			attacked=$(latency_p 99)
			stop_strangers
			result "${name}_without" "$r" "$undisturbed" ms
			result "${name}_under_attack" "$r" "$attacked" ms
			result "${name}_ratio" "$r" "$(calc "$attacked / $undisturbed")" x
		done
	done
}
