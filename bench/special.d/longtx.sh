# A transaction on A that has written and stays open for PEERS_LONG_SECONDS (600), under load. Ratio: catch-up of small update
# transactions at its end / at its start. Target: at least 0.9.

length=${PEERS_LONG_SECONDS:-600}

# catch_up_rate: of a catch-up of single-row updates; sets `rate`.
catch_up_rate() {
	link_stop
	update_backlog 1000000 100000 "$backlog_updates"
	timed_catch_up
	rate=$(calc "$backlog_updates / $elapsed")
}

measure() {
	local r holder at_start
	begin_peer onerepl
	peer_setup
	link_start
	insert_backlog 1000000 100
	mark && await_mark
	catch_up_rate
	for ((r = 1; r <= rounds; r++)); do
		sql "$port_a" bench -c 'BEGIN' -c "INSERT INTO lat (sent) VALUES (now())" -c "SELECT pg_sleep(86400)" >/dev/null 2>&1 &
		holder=$!
		sleep 1
		catch_up_rate
		at_start=$rate
		pgbench -n -c 2 -R "${PEERS_LONG_RATE:-300}" -T $((length / rounds)) -p "$port_a" bench >"$dir/load.log" 2>&1
		mark && await_mark
		catch_up_rate
		result longtx_start "$r" "$at_start" changes/s
		result longtx_end "$r" "$rate" changes/s
		result longtx_ratio "$r" "$(calc "$rate / $at_start")" x
		a -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(86400)%' AND pid <> pg_backend_pid()" >/dev/null
		wait $holder || true
	done
}
