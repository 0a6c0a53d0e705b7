# Catch-up over a line with a round trip of 200 ms, divided by that over one without. Target: at least 0.8.

measure() {
	local r delay first=0
	local -A rate
	http_url=http://127.0.0.1:$relay_port
	begin_peer onerepl
	start_relay "$http_port" 0
	peer_teardown() { stop_relay; }
	peer_setup
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		for delay in 0 0.1; do
			stop_relay
			start_relay "$http_port" $delay
			link_start
			mark && await_mark
			link_stop
			first=$((first + 10000000))
			insert_backlog $first "$backlog_tx"
			timed_catch_up
			rate[$delay]=$(calc "$backlog_tx * 1000 / $elapsed")
		done
		result longline_without "$r" "${rate[0]}" changes/s
		result longline_200ms "$r" "${rate[0.1]}" changes/s
		result longline_ratio "$r" "$(calc "${rate[0.1]} / ${rate[0]}")" x
		say "$(b -c "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'waiting'") bodies have waited at the central until now"
	done
}
